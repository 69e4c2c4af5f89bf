package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OperationVerb is the action of an operation.
type OperationVerb string

// Verbs.
const (
	// Apply creates or changes an object.
	Apply OperationVerb = "apply"
	// Delete deletes an object, if it exists.
	Delete OperationVerb = "delete"
	// Replace deletes an object and creates another of the same name.
	Replace OperationVerb = "replace"
	// Strip removes all finalizers from an object, deletes it and creates another of the same name, like a user in a
	// hurry.
	Strip OperationVerb = "strip"
)

// Operation is one action of a user.
type Operation struct {
	Verb     OperationVerb
	Resource schema.GroupVersionResource
	// Object is the whole object; Delete uses only its name.
	Object *unstructured.Unstructured
	// Summary describes the object in a few words.
	Summary string
}

// Key returns the resource, namespace and name of the object.
func (o Operation) Key() string {
	key := o.Resource.Resource + "/"
	if namespace := o.Object.GetNamespace(); namespace != "" {
		key += namespace + "/"
	}
	return key + o.Object.GetName()
}

// String returns the text for the history.
func (o Operation) String() string {
	text := string(o.Verb) + " " + o.Key()
	if o.Summary != "" {
		text += " (" + o.Summary + ")"
	}
	return text
}

// ObjectKind draws operations on the objects of one kind.
type ObjectKind struct {
	Resource schema.GroupVersionResource
	// Weight is the relative frequency of the kind.
	Weight int
	// Strippable means that the system should survive a forced deletion of such an object.
	Strippable bool
	// Once holds the objects that must exist before the first operation.
	Once []*unstructured.Unstructured
	// Draw draws a desired object, and describes it in a few words.
	Draw func(r *rand.Rand) (object *unstructured.Unstructured, summary string)
	// Keep means that an object is changed but never deleted.
	Keep bool
	// Lingers means that some objects have a foreign finalizer. After a deletion they stay until an operation applies
	// them without it.
	Lingers bool
	// Fixed reports whether a change needs a new object, because a field is immutable.
	Fixed func(before, after *unstructured.Unstructured) bool
}

// AllKinds returns every kind. Add a new kind here.
func AllKinds() []ObjectKind {
	return append([]ObjectKind{
		namespaceKind(), storeKind(), authorizationModelKind(), policyDocumentKind(), definitionKind(), impliedRolesKind(), roleBindingKind(), roleKind(),
	}, iamKinds()...)
}

// Workload draws operations.
type Workload struct {
	random *rand.Rand
	kinds  []ObjectKind
	total  int
	// favourite is the kind that gets at least half of the operations. spell counts the remaining ones.
	favourite ObjectKind
	spell     int
	// has holds the objects that were applied and not deleted.
	has map[string]*unstructured.Unstructured
}

// New returns a workload that starts with the objects of [InitialOperations].
func New(random *rand.Rand) *Workload {
	w := &Workload{random: random, kinds: AllKinds(), has: map[string]*unstructured.Unstructured{}}
	for _, k := range w.kinds {
		w.total += k.Weight
	}
	for _, o := range InitialOperations() {
		w.has[o.Key()] = o.Object
	}
	return w
}

// InitialOperations returns the operations that create the objects of [ObjectKind.Once].
func InitialOperations() []Operation {
	var all []Operation
	for _, k := range AllKinds() {
		for _, o := range k.Once {
			all = append(all, Operation{Verb: Apply, Resource: k.Resource, Object: o})
		}
	}
	return all
}

// deletions is the share of operations on existing objects that delete them, in percent.
const deletions = 25

// NextOperation draws the next operation.
func (w *Workload) NextOperation() Operation { return w.drawOperation(w.drawKind()) }

// NextForcedOperation draws an operation that removes the finalizers of an object and recreates it.
func (w *Workload) NextForcedOperation() Operation {
	k := w.drawKind()
	for !k.Strippable {
		k = w.drawKind()
	}
	o := w.drawOperation(k)
	for o.Verb == Delete {
		o = w.drawOperation(k)
	}
	o.Verb = Strip
	return o
}

// longest bounds the number of operations for which one kind stays the favourite.
const longest = 16

// drawKind draws a kind: the favourite for half of the operations, any kind for the others.
func (w *Workload) drawKind() ObjectKind {
	if w.spell--; w.spell < 0 {
		w.favourite, w.spell = w.drawAnyKind(), w.random.IntN(longest)
	}
	if w.random.IntN(2) == 0 {
		return w.favourite
	}
	return w.drawAnyKind()
}

func (w *Workload) drawAnyKind() ObjectKind {
	n := w.random.IntN(w.total)
	for _, k := range w.kinds {
		if n -= k.Weight; n < 0 {
			return k
		}
	}
	return w.kinds[0]
}

func (w *Workload) drawOperation(k ObjectKind) Operation {
	object, summary := k.Draw(w.random)
	if k.Lingers && w.random.IntN(6) == 0 {
		object.SetFinalizers([]string{"chaos.example/patience"})
		summary = strings.TrimPrefix(summary+", it lingers", ", ")
	}
	o := Operation{Verb: Apply, Resource: k.Resource, Object: object, Summary: summary}
	before := w.has[o.Key()]
	switch {
	case before != nil && !k.Keep && w.random.IntN(100) < deletions:
		delete(w.has, o.Key())
		o.Verb, o.Summary = Delete, ""
		return o
	case before != nil && k.Fixed != nil && k.Fixed(before, object):
		o.Verb = Replace
	}
	w.has[o.Key()] = object
	return o
}

// newObject returns an object without content.
func newObject(gvr schema.GroupVersionResource, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(gvr.GroupVersion().String())
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// nameReference returns a reference by name.
func nameReference(name string) map[string]any { return map[string]any{"name": name} }

// kindReference returns a reference by kind and name.
func kindReference(kind, name string) map[string]any {
	return withField(nameReference(name), "kind", kind)
}

func withField(fields map[string]any, key, value string) map[string]any {
	fields[key] = value
	return fields
}

// drawOne draws one of several values.
func drawOne[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func drawNumbered(r *rand.Rand, prefix string, n int) string {
	return fmt.Sprintf("%s%d", prefix, r.IntN(n))
}
