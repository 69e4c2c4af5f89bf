package syntax

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/tree"
	"github.com/entail-dev/entail/services/policy/internal/words"
)

// API version and kind of the custom resource that holds a document.
const (
	APIVersion = "iapl.infratographer.com/v1alpha1"
	Kind       = "PolicyDocument"
)

// Limits of the custom resource: characters of a text and of the name of a store, items of a list and of an inner list.
const (
	maxText, maxStore      = 256, 253
	maxItems, maxNestItems = 1000, 200
)

// unwrap returns the document in a manifest of a PolicyDocument. Any other root is itself a document. A manifest must
// follow the rules of the custom resource: content that the API server rejects or drops is an error.
func (d *decoder) unwrap(root tree.Node) tree.Node {
	version, is := child(root, "apiVersion"), child(root, "kind")
	if version.Line == 0 || is.Line == 0 {
		return root
	}
	if version.Text != APIVersion || is.Text != Kind {
		d.unreadable(is, "an object of the kind "+words.Quote(is.Text)+" in "+words.Quote(version.Text)+" is no policy",
			"name files that hold documents, or objects of the kind "+Kind+" in "+APIVersion)
		return tree.Node{}
	}
	d.manifest = true
	d.reportUnknownKeys(root, "a manifest", "apiVersion", "kind", "metadata", "spec", "status")
	d.metadata(child(root, "metadata"), is)
	spec := child(root, "spec")
	if spec.Line == 0 || spec.Kind == tree.Null {
		d.report(is, policy.CodeMissing, "the manifest has no spec", "put storeRef and the lists of the document under `spec:`")
		return tree.Node{}
	}
	if spec.Kind == tree.Mapping {
		d.storeRef(child(spec, "storeRef"), spec)
	}
	return without(spec, "storeRef")
}

func (d *decoder) metadata(n, manifest tree.Node) {
	d.reportUnknownKeys(n, "metadata", "name", "namespace", "labels", "annotations", "generateName", "finalizers", "ownerReferences", "uid", "resourceVersion",
		"generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink")
	if cmp.Or(child(n, "name").Text, child(n, "generateName").Text) == "" {
		d.report(manifest, policy.CodeMissing, "the manifest has no name", "add `metadata: {name: ...}`")
	}
	namespace := cmp.Or(child(n, "namespace").Text, "default")
	d.document.Object = namespace + "/" + child(n, "name").Text
	d.document.Source.Owner = ObjectOwner(d.document.Object)
}

func (d *decoder) storeRef(n, spec tree.Node) {
	d.reportUnknownKeys(n, "storeRef", "name", "cluster")
	name, cluster := child(n, "name"), child(n, "cluster")
	if name.Text == "" {
		d.report(spec, policy.CodeMissing, "the manifest names no store", "add `storeRef: {name: ...}` to its spec")
	}
	d.text(name, maxStore)
	d.text(cluster, maxStore)
}

// reportUnknownKeys reports the keys of a mapping that the API server would drop.
func (d *decoder) reportUnknownKeys(n tree.Node, what string, keys ...string) {
	if n.Kind != tree.Mapping {
		return
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Children); i += 2 {
		switch key := n.Children[i]; {
		case !slices.Contains(keys, key.Text):
			d.unknownKey(key, what, keys)
		case seen[key.Text]:
			d.report(key, policy.CodeDupKey, what+" has the key "+key.Text+" twice", "keep one of them")
		default:
			seen[key.Text] = true
		}
	}
}

// reportFileOnlyForm reports a form that is valid in a file, but not in a manifest.
func (d *decoder) reportFileOnlyForm(is bool, n tree.Node, message, hint string) {
	if d.manifest && !is {
		d.report(n, policy.CodeManifest, "the custom resource does not take this document: "+message,
			hint+"; `entail policy fmt -w` writes the form that it takes")
	}
}

// reportSpelling reports a key of a manifest with another spelling. The API server treats it as unknown.
func (d *decoder) reportSpelling(key tree.Node, as string) {
	d.reportFileOnlyForm(key.Text == as, key, "it has the key "+words.Quote(key.Text), "write "+as)
}

// text reports a text that a manifest cannot have: Kubernetes reads it as another type, or it is too long.
func (d *decoder) text(n tree.Node, most int) {
	d.reportFileOnlyForm(n.Kind != tree.Scalar || !n.Plain || tree.IsText(n.Text), n,
		"YAML has "+words.Quote(n.Text)+" for a number, a truth value or the like", "put it in quotes")
	if length := utf8.RuneCountInString(n.Text); d.manifest && length > most {
		d.report(n, policy.CodeLimit, fmt.Sprintf("the text has %d characters, and the custom resource takes %d", length, most), "shorten it")
	}
}

// length reports a list that is too long for a manifest.
func (d *decoder) length(list tree.Node, what string) {
	most := maxItems
	if what == "relationships" || what == "conditions" {
		most = maxNestItems
	}
	if d.manifest && len(list.Children) > most {
		d.report(list, policy.CodeLimit, fmt.Sprintf("%s has %d items, and the custom resource takes %d", what, len(list.Children), most),
			"put some into another document")
	}
}

// child returns the value of a key in Kubernetes' spelling. Its line is 0 if the key is absent.
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
