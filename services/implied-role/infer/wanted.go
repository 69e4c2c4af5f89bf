package infer

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What generated bindings bear.
const (
	// ManagedByLabel has the value ManagedBy.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "implied-role"
	// ImpliedLabel has the value "true".
	ImpliedLabel = "role.k8s.com/implied"
	implied      = "true"
	// SourceLabel and ChildLabel have hashes: names of roles and bindings may not be values of labels.
	SourceLabel = "role.k8s.com/source"
	ChildLabel  = "role.k8s.com/child"
	// SourceAnnotation, ParentAnnotation, ChildAnnotation and ViaAnnotation are for people.
	SourceAnnotation = "role.k8s.com/source-binding"
	ParentAnnotation = "role.k8s.com/parent-role"
	ChildAnnotation  = "role.k8s.com/child-role"
	ViaAnnotation    = "role.k8s.com/via"
)

// bootstrapping is on bindings that the API server makes for itself.
const bootstrapping = "kubernetes.io/bootstrapping"

const kindRoleBinding = "RoleBinding"

// prefix is what the names of generated bindings begin with.
const prefix = "ir-"

// Name is the name of the binding that the named source brings about for child. The hash
// is over lengths and texts, so no two pairs share it; the rest is for people.
func Name(source string, child Role) string {
	const readable = 20
	return prefix + legible(source, readable) + "-" + legible(child.Name, readable) + "-" + hash(source, child.Kind(), child.Name)
}

// legible is the beginning of a name, in letters that any name may have.
func legible(name string, limit int) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name[:min(len(name), limit)])
	return strings.Trim(name, "-.")
}

// fingerprint has 128 bits.
type fingerprint [16]byte

func fingerprintOf(texts ...string) fingerprint {
	var room [1024]byte
	data := room[:0]
	for _, text := range texts {
		data = binary.BigEndian.AppendUint32(data, uint32(len(text)))
		data = append(data, text...)
	}
	sum := sha256.Sum256(data)
	return fingerprint(sum[:len(fingerprint{})])
}

// hash has 80 bits in 16 letters and digits.
func hash(texts ...string) string {
	const bytes = 10
	sum := fingerprintOf(texts...)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:bytes]))
}

// dressOf is a fingerprint of what matters among labels, annotations and the reference to the owner.
func dressOf(labels, annotations map[string]string, owner metav1.OwnerReference) fingerprint {
	return fingerprintOf(
		labels[ManagedByLabel], labels[ImpliedLabel], labels[SourceLabel], labels[ChildLabel],
		annotations[SourceAnnotation], annotations[ParentAnnotation], annotations[ChildAnnotation], annotations[ViaAnnotation],
		owner.Name, string(owner.UID),
	)
}

// Wanted is a binding that follows from its source.
type Wanted struct {
	Name   string
	Source *Binding
	offer
	// Held means that it follows from paused rules only: it may stay, but is not made.
	Held bool
	// origin is the hash of the source.
	origin string
}

// offer is a role that comes with another.
type offer struct {
	Child Role
	// Via is the shortest path, for people.
	Via  string
	hash string
}

// Object is the binding as it must be. Nothing is copied from the source but its subjects:
// tools that keep a cluster as it is in Git remove what bears their labels.
func (w Wanted) Object() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kindRoleBinding},
		ObjectMeta: metav1.ObjectMeta{
			Name: w.Name, Namespace: w.Source.Namespace,
			Labels: map[string]string{ManagedByLabel: ManagedBy, ImpliedLabel: implied, SourceLabel: w.origin, ChildLabel: w.hash},
			Annotations: map[string]string{
				SourceAnnotation: w.Source.Name, ParentAnnotation: w.Source.Role.String(), ChildAnnotation: w.Child.String(), ViaAnnotation: w.Via,
			},
			// So garbage collection removes it with its source, whether or not we run.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kindRoleBinding, Name: w.Source.Name, UID: w.Source.UID,
			}},
		},
		RoleRef: w.Child.ref(), Subjects: w.Source.Subjects,
	}
}

// Binding is what is read of the object when it is there.
func (w Wanted) Binding() *Binding {
	return &Binding{
		Namespace: w.Source.Namespace, Name: w.Name, Role: w.Child, Subjects: w.Source.Subjects,
		Source: w.Source.Name, Labelled: true, dress: w.dress(),
	}
}

// dress is what [dressOf] makes of the object.
func (w Wanted) dress() fingerprint {
	return fingerprintOf(ManagedBy, implied, w.origin, w.hash,
		w.Source.Name, w.Source.Role.String(), w.Child.String(), w.Via, w.Source.Name, string(w.Source.UID))
}

// is reports whether a binding of ours is as it must be. What others added to it may stay.
func (w Wanted) is(b *Binding) bool {
	return slices.Equal(b.Subjects, w.Source.Subjects) && b.dress == w.dress()
}

// maxOffers is how many offers a rulebook keeps: of a chain of so many roles there are a hundred times more.
const maxOffers = 200_000

// offers lists what comes with a role, in order.
func (b *Rulebook) offers(r Role) []offer {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, ok := b.offered[r]
	if !ok {
		for child, path := range b.graph.Paths(r) {
			list = append(list, offer{Child: child, Via: via(path), hash: hash(child.Kind(), child.Name)})
		}
		if b.kept += len(list); b.kept > maxOffers {
			clear(b.offered)
			b.kept = len(list)
		}
		b.offered[r] = list
	}
	return list
}

// via is a path for people, who do not read long ones to the end.
func via(path []Role) string {
	const shown = 12
	texts := make([]string, 0, shown+1)
	for i, r := range path {
		switch {
		case len(path) <= shown || i < shown-1 || i == len(path)-1:
			texts = append(texts, r.String())
		case i == shown-1:
			texts = append(texts, "…")
		}
	}
	return strings.Join(texts, " -> ")
}
