package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Verb is what is done to an object.
type Verb string

// Verbs.
const (
	// Apply makes an object be as given.
	Apply Verb = "apply"
	// Delete deletes an object, if it is there.
	Delete Verb = "delete"
	// Replace deletes an object and makes another of the same name.
	Replace Verb = "replace"
	// Strip takes all finalizers from an object, deletes it and makes another of the same name: what
	// people do who are in a hurry.
	Strip Verb = "strip"
)

// Operation is one thing that a person does.
type Operation struct {
	Verb     Verb
	Resource schema.GroupVersionResource
	// Object is the whole object, but for Delete, where its name is enough.
	Object *unstructured.Unstructured
	// Summary tells what is in the object, in a few words.
	Summary string
}

// Key names the object.
func (o Operation) Key() string {
	key := o.Resource.Resource + "/"
	if namespace := o.Object.GetNamespace(); namespace != "" {
		key += namespace + "/"
	}
	return key + o.Object.GetName()
}

// String is what the history says.
func (o Operation) String() string {
	text := string(o.Verb) + " " + o.Key()
	if o.Summary != "" {
		text += " (" + o.Summary + ")"
	}
	return text
}

// Kind draws operations on the objects of one kind.
type Kind struct {
	Resource schema.GroupVersionResource
	// Weight is how often the kind is drawn, beside others.
	Weight int
	// Strippable says that force-deleting it should be survived.
	Strippable bool
	// Once is what has to be there before anything else.
	Once []*unstructured.Unstructured
	// Draw is an object as somebody might want it, and what is in it in a few words.
	Draw func(r *rand.Rand) (object *unstructured.Unstructured, summary string)
	// Keep says that an object is never deleted, only changed.
	Keep bool
	// Lingers says that some objects have a finalizer of somebody who takes his time: deleted, they stay until they are wanted without.
	Lingers bool
	// Fixed tells whether a change from one object to another needs a new one.
	Fixed func(before, after *unstructured.Unstructured) bool
}

// Kinds lists every kind. A new one joins here.
func Kinds() []Kind {
	return append([]Kind{
		namespaces(), stores(), authorizationModels(), policyDocuments(), definitions(), impliedRoles(), roleBindings(), roles(),
	}, iam()...)
}

// Workload draws operations.
type Workload struct {
	random *rand.Rand
	kinds  []Kind
	total  int
	// favourite is the kind that people are busy with, for so many more operations.
	favourite Kind
	spell     int
	// has are the objects that were asked for and not taken back.
	has map[string]*unstructured.Unstructured
}

// New is a workload on nothing but what has to be there before.
func New(random *rand.Rand) *Workload {
	w := &Workload{random: random, kinds: Kinds(), has: map[string]*unstructured.Unstructured{}}
	for _, k := range w.kinds {
		w.total += k.Weight
	}
	for _, o := range Prepare() {
		w.has[o.Key()] = o.Object
	}
	return w
}

// Prepare lists what has to be there before anything else.
func Prepare() []Operation {
	var all []Operation
	for _, k := range Kinds() {
		for _, o := range k.Once {
			all = append(all, Operation{Verb: Apply, Resource: k.Resource, Object: o})
		}
	}
	return all
}

// deletions is which part of all operations delete something, in percent.
const deletions = 25

// Next draws the next operation.
func (w *Workload) Next() Operation { return w.draw(w.kind()) }

// Force draws an operation that strips finalizers from an object and makes it anew.
func (w *Workload) Force() Operation {
	k := w.kind()
	for !k.Strippable {
		k = w.kind()
	}
	o := w.draw(k)
	for o.Verb == Delete {
		o = w.draw(k)
	}
	o.Verb = Strip
	return o
}

// longest is how many operations people are busy with one kind at most.
const longest = 16

// kind draws one. People do one sort of thing for a while, and others beside it.
func (w *Workload) kind() Kind {
	if w.spell--; w.spell < 0 {
		w.favourite, w.spell = w.any(), w.random.IntN(longest)
	}
	if w.random.IntN(2) == 0 {
		return w.favourite
	}
	return w.any()
}

func (w *Workload) any() Kind {
	n := w.random.IntN(w.total)
	for _, k := range w.kinds {
		if n -= k.Weight; n < 0 {
			return k
		}
	}
	return w.kinds[0]
}

func (w *Workload) draw(k Kind) Operation {
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

// object begins an object of a kind.
func object(gvr schema.GroupVersionResource, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(gvr.GroupVersion().String())
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// named is how objects refer to each other.
func named(name string) map[string]any { return map[string]any{"name": name} }

// with adds a field.
func ofKind(kind, name string) map[string]any { return with(named(name), "kind", kind) }

func with(fields map[string]any, key, value string) map[string]any {
	fields[key] = value
	return fields
}

// some draws one of several.
func some[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func numbered(r *rand.Rand, prefix string, n int) string {
	return fmt.Sprintf("%s%d", prefix, r.IntN(n))
}
