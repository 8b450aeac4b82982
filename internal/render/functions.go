package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	gotemplate "text/template"
	"text/template/parse"

	ctemplate "github.com/hashicorp/consul-template/template"

	"hadrain/internal/statefile"
)

// Every function of consul-template is in one of these lists, so that one of a
// later version cannot be used before somebody has looked at it.
const (
	// computing need nothing but their arguments. Its sprig_ functions belong to
	// them: the library takes only those that sprig calls hermetic.
	computing = `
		base64Decode base64Encode base64URLDecode base64URLEncode byKey byMeta byPort byTag
		contains containsAll containsAny containsNone containsNotAll executeTemplate explode explodeMap
		hmacSHA256Hex in indent join loop md5sum mergeMap mergeMapWithOverride parseBool parseFloat parseInt
		parseJSON parseUint parseYAML regexMatch regexReplaceAll replaceAll scratch sha256Hex split splitToMap
		spew_sdump spew_sprintf timestamp toJSON toJSONPretty toLower toTOML toTitle toUnescapedJSON
		toUnescapedJSONPretty toUpper toYAML trim trimPrefix trimSpace trimSuffix
		add divide maximum minimum modulo multiply subtract`

	// reading are the functions of keys, for which render has its own: they read
	// the state prefix, and no other key.
	reading = `key keyExists keyOrDefault ls safeLs safeTree tree`

	// outside reach files, the environment, other programs and the network
	// interfaces; a template may use those that [Template.Allow] names.
	outside = `env envOrDefault file mustEnv plugin sockaddr writeToFile`

	// elsewhere ask for what render does not read, or write to its standard
	// output; no template may use them.
	elsewhere = `
		caLeaf caRoots connect datacenters exportedServices importedServices node nodes partitions peerings
		service services secret secrets pkiCert spew_dump spew_printf
		nomadService nomadServices nomadVar nomadVarExists nomadVarList nomadVarListSafe`

	// ours are those of render itself.
	ours = `current desired prefix`

	// builtin are those of text/template.
	builtin = `and call eq ge gt html index js le len lt ne not or print printf println slice urlquery`
)

const sprig = "sprig_"

// words makes a set of a list above.
func words(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

var (
	free       = words(computing + " " + reading + " " + ours + " " + builtin)
	allowable  = words(outside)
	impossible = words(elsewhere)
	readers    = words(reading)
)

// checkAllow returns an error if names holds what cannot be allowed.
func checkAllow(names []string) error {
	for _, name := range names {
		if !allowable[name] {
			return fmt.Errorf("allowing the function %q: want some of %s", name, strings.Join(slices.Sorted(maps.Keys(allowable)), ", "))
		}
	}
	return nil
}

// denied returns what the library is to refuse, in case that the check of the
// text misses something.
func denied(allow []string) []string {
	names := slices.Collect(maps.Keys(impossible))
	for name := range allowable {
		if !slices.Contains(allow, name) {
			names = append(names, name)
		}
	}
	return names
}

// extra returns the functions that allow puts in the place of the library's,
// which would wait for a watch that nobody runs.
func extra(allow []string) gotemplate.FuncMap {
	if !slices.Contains(allow, "file") {
		return nil
	}
	return gotemplate.FuncMap{"file": func(path string) (string, error) {
		data, err := statefile.ReadRegular(path, maxSource)
		return string(data), err
	}}
}

// checker looks for functions that a template may not use, whether or not they
// would be reached.
type checker struct {
	prefix string // that is read
	allow  []string
	tree   *parse.Tree
	err    error // the first one found
}

// checkFunctions parses text. An error names the file source, and the line.
func checkFunctions(source, text, prefix string, allow []string) error {
	tree := parse.New(source)
	tree.Mode = parse.SkipFuncCheck // done below, with better words
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		return fmt.Errorf("template %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		c := checker{prefix: prefix, allow: allow, tree: trees[name]}
		c.list(c.tree.Root)
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

func (c *checker) fail(at parse.Node, format string, args ...any) {
	if c.err == nil {
		where, _ := c.tree.ErrorContext(at)
		c.err = fmt.Errorf("template %s: %w", where, fmt.Errorf(format, args...))
	}
}

func (c *checker) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		c.node(n)
	}
}

func (c *checker) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.ActionNode:
		c.pipe(n.Pipe)
	case *parse.IfNode:
		c.branch(&n.BranchNode)
	case *parse.RangeNode:
		c.branch(&n.BranchNode)
	case *parse.WithNode:
		c.branch(&n.BranchNode)
	case *parse.TemplateNode:
		c.pipe(n.Pipe)
	case *parse.PipeNode:
		c.pipe(n)
	case *parse.ChainNode:
		c.node(n.Node)
	case *parse.IdentifierNode:
		c.function(n)
	}
}

func (c *checker) branch(b *parse.BranchNode) {
	c.pipe(b.Pipe)
	c.list(b.List)
	c.list(b.ElseList)
}

func (c *checker) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, cmd := range p.Cmds {
		for _, arg := range cmd.Args {
			c.node(arg)
		}
		c.readsOnlyState(cmd)
	}
}

func (c *checker) function(n *parse.IdentifierNode) {
	name := n.Ident
	switch {
	case free[name], strings.HasPrefix(name, sprig) && hasFunction(name), slices.Contains(c.allow, name):
	case allowable[name]:
		c.fail(n, "the function %s reaches outside of the state: allow it for this template in the file of --templates, or do without it", name)
	case impossible[name]:
		c.fail(n, "the function %s does not work here: nothing but the keys under %s is read", name, c.prefix)
	default:
		c.fail(n, "there is no function %s", name)
	}
}

// hasFunction asks the library whether it has the function name. It has a part
// of sprig's, and shows which only when it parses a template.
func hasFunction(name string) bool {
	t, err := ctemplate.NewTemplate(&ctemplate.NewTemplateInput{Contents: "{{ if false }}{{ " + name + " }}{{ end }}"})
	if err == nil {
		_, err = t.Execute(&ctemplate.ExecuteInput{Brain: ctemplate.NewBrain()})
	}
	return err == nil
}

// readsOnlyState checks an argument that is written out: any other is checked
// when it is known.
func (c *checker) readsOnlyState(cmd *parse.CommandNode) {
	if len(cmd.Args) < 2 {
		return
	}
	name, ok := cmd.Args[0].(*parse.IdentifierNode)
	if !ok || !readers[name.Ident] {
		return
	}
	if text, ok := cmd.Args[1].(*parse.StringNode); ok {
		if err := checkUnder(text.Text, c.prefix); err != nil {
			c.fail(cmd, "%w", err)
		}
	}
}
