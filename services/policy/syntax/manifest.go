package syntax

import (
	"cmp"

	"github.com/entail-dev/entail/services/policy/internal/tree"
	"github.com/entail-dev/entail/services/policy/internal/words"
)

// The custom resource that holds a document.
const (
	apiVersion = "iapl.infratographer.com/v1alpha1"
	kind       = "PolicyDocument"
)

// unwrap finds the document in a manifest of a PolicyDocument; what is no manifest is one
// itself. The store that the manifest names is not looked at.
func (d *decoder) unwrap(root tree.Node) tree.Node {
	version, is := child(root, "apiVersion"), child(root, "kind")
	if version.Line == 0 || is.Line == 0 {
		return root
	}
	if version.Text != apiVersion || is.Text != kind {
		d.unreadable(is, "an object of the kind "+words.Quote(is.Text)+" in "+words.Quote(version.Text)+" is no policy",
			"name files that hold documents, or objects of the kind "+kind+" in "+apiVersion)
		return tree.Node{}
	}
	metadata := child(root, "metadata")
	namespace := cmp.Or(child(metadata, "namespace").Text, "default")
	d.document.Source.Owner = ObjectOwner(namespace + "/" + child(metadata, "name").Text)
	return without(child(root, "spec"), "storeRef")
}

// child is the value of a key as Kubernetes spells it; at line 0 if there is none.
func child(n tree.Node, key string) tree.Node {
	if n.Kind == tree.Mapping {
		for i := 0; i < len(n.Children); i += 2 {
			if n.Children[i].Text == key {
				return n.Children[i+1]
			}
		}
	}
	return tree.Node{}
}

func without(n tree.Node, key string) tree.Node {
	var kept []tree.Node
	for i := 0; i+1 < len(n.Children); i += 2 {
		if n.Children[i].Text != key {
			kept = append(kept, n.Children[i], n.Children[i+1])
		}
	}
	n.Children = kept
	return n
}
