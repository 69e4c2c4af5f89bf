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

// unwrapManifest returns the document in a manifest of a PolicyDocument. Any other root is itself a document. A manifest must
// follow the rules of the custom resource: content that the API server rejects or drops is an error.
func (d *documentDecoder) unwrapManifest(root tree.Node) tree.Node {
	version, is := childValue(root, "apiVersion"), childValue(root, "kind")
	if version.Line == 0 || is.Line == 0 {
		return root
	}
	if version.Text != APIVersion || is.Text != Kind {
		d.reportUnreadable(is, "an object of the kind "+words.QuoteName(is.Text)+" in "+words.QuoteName(version.Text)+" is no policy",
			"name files that hold documents, or objects of the kind "+Kind+" in "+APIVersion)
		return tree.Node{}
	}
	d.manifest = true
	d.reportUnknownKeys(root, "a manifest", "apiVersion", "kind", "metadata", "spec", "status")
	d.decodeMetadata(childValue(root, "metadata"), is)
	spec := childValue(root, "spec")
	if spec.Line == 0 || spec.Kind == tree.Null {
		d.reportError(is, policy.CodeMissing, "the manifest has no spec", "put storeRef and the lists of the document under `spec:`")
		return tree.Node{}
	}
	if spec.Kind == tree.Mapping {
		d.checkStoreRef(childValue(spec, "storeRef"), spec)
	}
	return withoutKey(spec, "storeRef")
}

func (d *documentDecoder) decodeMetadata(n, manifest tree.Node) {
	d.reportUnknownKeys(n, "metadata", "name", "namespace", "labels", "annotations", "generateName", "finalizers", "ownerReferences", "uid", "resourceVersion",
		"generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink")
	if cmp.Or(childValue(n, "name").Text, childValue(n, "generateName").Text) == "" {
		d.reportError(manifest, policy.CodeMissing, "the manifest has no name", "add `metadata: {name: ...}`")
	}
	namespace := cmp.Or(childValue(n, "namespace").Text, "default")
	d.document.Object = namespace + "/" + childValue(n, "name").Text
	d.document.Source.Owner = ObjectOwner(d.document.Object)
}

func (d *documentDecoder) checkStoreRef(n, spec tree.Node) {
	d.reportUnknownKeys(n, "storeRef", "name", "cluster")
	name, cluster := childValue(n, "name"), childValue(n, "cluster")
	if name.Text == "" {
		d.reportError(spec, policy.CodeMissing, "the manifest names no store", "add `storeRef: {name: ...}` to its spec")
	}
	d.reportInvalidText(name, maxStore)
	d.reportInvalidText(cluster, maxStore)
}

// reportUnknownKeys reports the keys of a mapping that the API server would drop.
func (d *documentDecoder) reportUnknownKeys(n tree.Node, what string, keys ...string) {
	if n.Kind != tree.Mapping {
		return
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Children); i += 2 {
		switch key := n.Children[i]; {
		case !slices.Contains(keys, key.Text):
			d.reportUnknownKey(key, what, keys)
		case seen[key.Text]:
			d.reportError(key, policy.CodeDupKey, what+" has the key "+key.Text+" twice", "keep one of them")
		default:
			seen[key.Text] = true
		}
	}
}

// reportFileOnlySyntax reports a form that is valid in a file, but not in a manifest.
func (d *documentDecoder) reportFileOnlySyntax(is bool, n tree.Node, message, hint string) {
	if d.manifest && !is {
		d.reportError(n, policy.CodeManifest, "the custom resource does not accept this document: "+message,
			hint+"; `entail policy fmt -w` writes the form that it takes")
	}
}

// reportKeySpelling reports a key of a manifest with another spelling. The API server treats it as unknown.
func (d *documentDecoder) reportKeySpelling(key tree.Node, as string) {
	d.reportFileOnlySyntax(key.Text == as, key, "it has the key "+words.QuoteName(key.Text), "write "+as)
}

// reportInvalidText reports a text that a manifest cannot have: Kubernetes reads it as another type, or it is too long.
func (d *documentDecoder) reportInvalidText(n tree.Node, most int) {
	d.reportFileOnlySyntax(n.Kind != tree.Scalar || !n.Plain || tree.IsTextScalar(n.Text), n,
		"YAML has "+words.QuoteName(n.Text)+" for a number, a truth value or the like", "put it in quotes")
	if length := utf8.RuneCountInString(n.Text); d.manifest && length > most {
		d.reportError(n, policy.CodeLimit, fmt.Sprintf("the text has %d characters, and the custom resource allows at most %d", length, most), "shorten it")
	}
}

// reportLongList reports a list that is too long for a manifest.
func (d *documentDecoder) reportLongList(list tree.Node, what string) {
	most := maxItems
	if what == "relationships" || what == "conditions" {
		most = maxNestItems
	}
	if d.manifest && len(list.Children) > most {
		d.reportError(list, policy.CodeLimit, fmt.Sprintf("%s has %d items, and the custom resource allows at most %d", what, len(list.Children), most),
			"put some into another document")
	}
}

// childValue returns the value of a key in Kubernetes' spelling. Its line is 0 if the key is absent.
func childValue(n tree.Node, key string) tree.Node {
	if n.Kind == tree.Mapping {
		for i := 0; i < len(n.Children); i += 2 {
			if n.Children[i].Text == key {
				return n.Children[i+1]
			}
		}
	}
	return tree.Node{}
}

func withoutKey(n tree.Node, key string) tree.Node {
	var kept []tree.Node
	for i := 0; i+1 < len(n.Children); i += 2 {
		if n.Children[i].Text != key {
			kept = append(kept, n.Children[i], n.Children[i+1])
		}
	}
	n.Children = kept
	return n
}
