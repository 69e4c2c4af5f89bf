package workload

import (
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Numbers of objects, users and tuples.
const (
	storeNames = 5
	partNames  = 8
	users      = 3
	numbers    = 3
	// A quarter of the draws have so many more tuples, which take several calls of OpenFGA.
	bulkLeast, bulkMost = 200, 800
)

// StoreResource returns the resource of kind Store.
func StoreResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "core.platform-mesh.io", Version: "v1alpha1", Resource: "stores"}
}

const roleAnnotation = "iapl.infratographer.com/roles"

func storeKind() ObjectKind {
	return ObjectKind{Resource: StoreResource(), Weight: 6, Strippable: true, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
		o := newObject(StoreResource(), "Store", "", drawNumbered(r, "store-", storeNames))
		o.SetAnnotations(map[string]string{roleAnnotation: "role#assignee"})
		variant := r.IntN(len(viewers))
		tuples := drawTuples(r, "doc")
		o.Object["spec"] = map[string]any{"coreModule": coreModuleText(variant), "discovery": "None", "tuples": tuples}
		return o, fmt.Sprintf("core %d, %d tuples", variant, len(tuples))
	}}
}

// viewers holds the variants of relation viewer. The second one gives more than the first, the third adds a relation,
// and the fourth allows a wildcard.
var viewers = []string{ //nolint:gochecknoglobals // It never changes.
	"    define viewer: [user]\n",
	"    define viewer: [user] or editor\n",
	"    define viewer: [user]\n    define auditor: [user]\n",
	"    define viewer: [user, user:*]\n",
}

// coreModuleText returns a core module.
func coreModuleText(variant int) string {
	return `module core
type user
type role
  relations
    define assignee: [user]
type core_platform-mesh_io_account
  relations
    define parent: [core_platform-mesh_io_account]
    define owner: [role#assignee] or owner from parent
    define member: [role#assignee] or owner or member from parent
` + viewableTypeText("doc", variant)
}

func viewableTypeText(name string, variant int) string {
	return "type " + name + "\n  relations\n    define editor: [user]\n" + viewers[variant]
}

// drawTuples draws from a small set of tuples, so that owners share some. Their type may be absent. Sometimes it adds
// an invalid tuple, or very many tuples.
func drawTuples(r *rand.Rand, own string) []any {
	all := []any{}
	seen := map[string]bool{}
	add := func(object, relation, user string) {
		if key := object + relation + user; !seen[key] {
			seen[key] = true
			all = append(all, map[string]any{"object": object, "relation": relation, "user": user})
		}
	}
	for range r.IntN(6) {
		add(fmt.Sprintf("%s:%d", drawOne(r, "doc", own), r.IntN(numbers)), drawOne(r, QuestionRelations()...), drawNumbered(r, "user:", users))
	}
	if r.IntN(8) == 0 {
		add("doc:1", "unknown", "user:1")
	}
	if r.IntN(4) == 0 {
		for i := range bulkLeast + r.IntN(bulkMost-bulkLeast) {
			add(fmt.Sprintf("doc:bulk%d", r.IntN(numbers)), "editor", fmt.Sprintf("user:b%d", i))
		}
	}
	return all
}

// QuestionRelations returns the relations that questions use.
func QuestionRelations() []string { return []string{"viewer", "editor", "auditor"} }

// QuestionUsers returns the OpenFGA users that questions use.
func QuestionUsers() []string { return numberedNames("user:", users) }

// QuestionObjects returns the objects that questions use.
func QuestionObjects() []string {
	var all []string
	for _, of := range append([]string{"doc"}, numberedNames("part_", partNames)...) {
		all = append(all, numberedNames(of+":", numbers)...)
	}
	return all
}

// StoreNames returns the names of all Stores that the workload draws.
func StoreNames() []string { return numberedNames("store-", storeNames) }

func numberedNames(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return all
}
