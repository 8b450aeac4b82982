package main

import (
	"bytes"
	"encoding/json"
	"time"
)

// The part of CycloneDX 1.5 that we fill, see
// https://cyclonedx.org/docs/1.5/json/. It has no serial number: the same
// release gives the same bytes.
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	References []link     `json:"externalReferences,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	Expression string `json:"expression"`
}

type link struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOfMaterials returns the bill as JSON.
func billOfMaterials(inv *inventory, version string, at time.Time) ([]byte, error) {
	product := component{
		Type: "application", Ref: "hadrain", Name: "hadrain", Version: version,
		Licenses: []license{{"Apache-2.0"}},
	}
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.5.schema.json", Format: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata: metadata{Timestamp: at.UTC().Format(time.RFC3339), Component: product},
	}
	top := dependency{Ref: product.Ref, DependsOn: []string{}}
	for _, binary := range inv.binaries {
		ref := "file:" + binary.name
		top.DependsOn = append(top.DependsOn, ref)
		b.Components = append(b.Components, component{
			Type: "file", Ref: ref, Name: binary.name, Version: version,
			Hashes: []hash{{"SHA-256", binary.sum}},
		})
		b.Dependencies = append(b.Dependencies, dependency{Ref: ref, DependsOn: binary.modules})
	}
	b.Dependencies = append([]dependency{top}, b.Dependencies...)
	for _, m := range inv.modules {
		b.Components = append(b.Components, m.component())
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(b)
	return out.Bytes(), err
}

func (m module) component() component {
	c := component{
		Type: "library", Ref: m.purl(), Name: m.path, Version: m.version, PURL: m.purl(),
		Licenses:   []license{{m.license}},
		References: []link{{"distribution", m.source()}},
	}
	if m.sum != "" {
		// Not one of CycloneDX' hashes: it is over a listing of the module's files.
		c.Properties = []property{{"hadrain:go.sum", m.sum}}
	}
	return c
}
