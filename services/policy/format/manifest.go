package format

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// ManifestTarget names the custom resource that a document becomes.
type ManifestTarget struct {
	// Store is the name of the Store of the policy.
	Store string
	// Namespace is the namespace of the object; empty means that of kubectl.
	Namespace string
	// Name is the name of the object, for a file with one document. Empty means the owner of each document.
	Name string
}

// ToManifests formats one file, and turns each document into the manifest of a custom resource. Existing manifests keep
// their names.
func ToManifests(file syntax.File, o ManifestTarget) ([]byte, policy.Diagnostics) {
	taken := map[string]bool{}
	return formatFile(file, func(d *syntax.Document, root *yaml.Node) error {
		if hasKey(root, "kind") {
			return nil
		}
		name, err := o.manifestName(d)
		if err == nil && taken[name] {
			err = fmt.Errorf("two documents would have the name %q", name)
		}
		taken[name] = true
		d.Source.Owner = syntax.ObjectOwner(cmp.Or(o.Namespace, "default") + "/" + name)
		o.wrapInManifest(root, name)
		return err
	})
}

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// manifestName derives the name of an object from the owner of the document.
func (o ManifestTarget) manifestName(d *syntax.Document) (string, error) {
	name := o.Name
	if name == "" {
		name = strings.NewReplacer("_", "-", " ", "-", ".", "-", "/", "-").Replace(strings.ToLower(d.Source.Owner))
	}
	if name == "" {
		return "", errors.New("a document has no name: begin it with a comment `# Provided by NAME`, or give the name")
	}
	if !objectName.MatchString(name) {
		return "", fmt.Errorf("%.64q cannot name an object", name)
	}
	return name, nil
}

// wrapInManifest puts a document into a manifest. A comment before the document stays before the manifest.
func (o ManifestTarget) wrapInManifest(root *yaml.Node, name string) {
	text := func(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value} }
	mapping := func(content ...*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Content: content} }
	metadata := mapping(text("name"), text(name))
	if o.Namespace != "" {
		metadata.Content = append(metadata.Content, text("namespace"), text(o.Namespace))
	}
	spec := mapping(append([]*yaml.Node{text("storeRef"), mapping(text("name"), text(o.Store))}, root.Content...)...)
	first := text("apiVersion")
	first.HeadComment, root.Content[0].HeadComment = root.Content[0].HeadComment, ""
	root.Content = []*yaml.Node{first, text(syntax.APIVersion), text("kind"), text(syntax.Kind), text("metadata"), metadata, text("spec"), spec}
}
