package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The parts of the OCI image specification 1.1 that we fill, see
// https://github.com/opencontainers/image-spec.
type (
	imageConfig struct {
		Created      string    `json:"created"`
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Config       runConfig `json:"config"`
		RootFS       rootFS    `json:"rootfs"`
		History      []history `json:"history"`
	}
	runConfig struct {
		User       string            `json:"User,omitempty"`
		Env        []string          `json:"Env,omitempty"`
		Entrypoint []string          `json:"Entrypoint,omitempty"`
		Labels     map[string]string `json:"Labels,omitempty"`
		StopSignal string            `json:"StopSignal,omitempty"`
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	history struct {
		Created   string `json:"created"`
		CreatedBy string `json:"created_by"`
	}
	manifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	// dockerManifest is what docker load reads, from manifest.json.
	dockerManifest struct {
		Config   string   `json:"Config"`
		RepoTags []string `json:"RepoTags"`
		Layers   []string `json:"Layers"`
	}
)

// archive is an OCI image layout in the making.
type archive struct {
	buf bytes.Buffer
	tar *tar.Writer
	err error // the first one
}

func (a *archive) add(name string, data []byte) {
	err := a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR})
	if err == nil {
		_, err = a.tar.Write(data)
	}
	a.err = errors.Join(a.err, err)
}

// blob adds data under its digest.
func (a *archive) blob(mediaType string, data []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digestOf(data), Size: len(data)}
	a.add(blobPath(d), data)
	return d
}

func (a *archive) json(v any) []byte {
	data, err := json.Marshal(v)
	a.err = errors.Join(a.err, err)
	return data
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobPath(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

// write writes the archive of an image with one layer, and returns the digest
// of its manifest.
func write(out, name string, layer []byte, config imageConfig) (string, error) {
	packed, err := compress(layer)
	if err != nil {
		return "", err
	}
	config.RootFS = rootFS{Type: "layers", DiffIDs: []string{digestOf(layer)}}
	config.History = []history{{Created: config.Created, CreatedBy: "packaging/image"}}
	a := &archive{}
	a.tar = tar.NewWriter(&a.buf)
	a.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	m := manifest{
		SchemaVersion: 2, MediaType: "application/vnd.oci.image.manifest.v1+json",
		Config:      a.blob("application/vnd.oci.image.config.v1+json", a.json(config)),
		Layers:      []descriptor{a.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed)},
		Annotations: config.Config.Labels,
	}
	top := a.blob(m.MediaType, a.json(m))
	a.add("manifest.json", a.json([]dockerManifest{{Config: blobPath(m.Config), RepoTags: []string{name}, Layers: []string{blobPath(m.Layers[0])}}}))
	top.Platform = &platform{config.Architecture, config.OS}
	// The first is what containerd calls it, the second is the specification's.
	top.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name[strings.LastIndexByte(name, ':')+1:]}
	a.add("index.json", a.json(index{2, "application/vnd.oci.image.index.v1+json", []descriptor{top}}))
	if err := errors.Join(a.err, a.tar.Close()); err != nil {
		return "", fmt.Errorf("making %s: %w", out, err)
	}
	return top.Digest, os.WriteFile(out, a.buf.Bytes(), 0o644)
}

func compress(data []byte) ([]byte, error) {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err := w.Close()
	return buf.Bytes(), err
}
