package infer

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"regexp"
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
	// IndependentLabel, with the value "true", makes a binding people's whose name is reserved.
	IndependentLabel = "role.k8s.com/independent"
	independent      = "true"
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

var reserved = regexp.MustCompile(`^` + prefix + `[a-z0-9.-]*-[a-z2-7]{16}$`)

// IsReserved reports whether a name has the form of those that [Name] gives: nobody else may use it.
func IsReserved(name string) bool { return reserved.MatchString(name) }

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

// metadataOf is a fingerprint of what matters among labels, annotations and the reference to the owner.
func metadataOf(labels, annotations map[string]string, owner metav1.OwnerReference) fingerprint {
	return fingerprintOf(
		labels[ManagedByLabel], labels[ImpliedLabel], labels[SourceLabel], labels[ChildLabel],
		annotations[SourceAnnotation], annotations[ParentAnnotation], annotations[ChildAnnotation], annotations[ViaAnnotation],
		owner.Name, string(owner.UID),
	)
}

// Desired is a binding that follows from its source.
type Desired struct {
	Name   string
	Source *Binding
	derivedRole
	// Paused means that it follows from paused rules only: it may stay, but is not made.
	Paused bool
	// sourceHash is the hash of the source.
	sourceHash string
}

// derivedRole is a role that comes with another.
type derivedRole struct {
	Child Role
	// Via is the shortest path, for people.
	Via  string
	hash string
}

// Object is the binding as it must be. Nothing is copied from the source but its subjects:
// tools that keep a cluster as it is in Git remove what bears their labels.
func (d *Desired) Object() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kindRoleBinding},
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name, Namespace: d.Source.Namespace,
			Labels: map[string]string{ManagedByLabel: ManagedBy, ImpliedLabel: implied, SourceLabel: d.sourceHash, ChildLabel: d.hash},
			Annotations: map[string]string{
				SourceAnnotation: d.Source.Name, ParentAnnotation: d.Source.Role.String(), ChildAnnotation: d.Child.String(), ViaAnnotation: d.Via,
			},
			// So garbage collection removes it with its source, whether or not we run.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kindRoleBinding, Name: d.Source.Name, UID: d.Source.UID,
			}},
		},
		RoleRef: d.Child.ref(), Subjects: d.Source.Subjects,
	}
}

// Binding is what is read of the object when it is there.
func (d *Desired) Binding() *Binding {
	return &Binding{
		Namespace: d.Source.Namespace, Name: d.Name, Role: d.Child, Subjects: d.Source.Subjects,
		Reserved: true, Source: d.Source.Name, Labelled: true, metadata: d.metadata(),
	}
}

// metadata is what [metadataOf] makes of the object.
func (d *Desired) metadata() fingerprint {
	return fingerprintOf(ManagedBy, implied, d.sourceHash, d.hash,
		d.Source.Name, d.Source.Role.String(), d.Child.String(), d.Via, d.Source.Name, string(d.Source.UID))
}

// is reports whether a binding of ours is as it must be. What others added to it may stay.
func (d *Desired) is(b *Binding) bool {
	return slices.Equal(b.Subjects, d.Source.Subjects) && b.metadata == d.metadata()
}

// Desired lists the bindings that follow from one, in the order of the roles they grant.
func (rs *RuleSet) Desired(source *Binding) []Desired {
	if source == nil || !source.IsSource() {
		return nil
	}
	parent := source.Role
	derived := rs.derivedRoles(parent)
	if len(derived) == 0 {
		return nil
	}
	list, sourceHash := make([]Desired, len(derived)), hash(source.Name)
	for i, r := range derived {
		list[i] = Desired{
			Name: Name(source.Name, r.Child), Source: source, derivedRole: r, sourceHash: sourceHash,
			Paused: rs.free != rs.graph && !rs.free.Reaches(parent, r.Child),
		}
	}
	return list
}

// maxDerived is how many derived roles a rule set keeps: of a chain of so many roles there are a hundred times more.
const maxDerived = 200_000

// derivedRoles lists what comes with a role, in order.
func (rs *RuleSet) derivedRoles(r Role) []derivedRole {
	a := rs.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	list, ok := a.derived[r]
	if !ok {
		for child, path := range rs.graph.Paths(r) {
			list = append(list, derivedRole{Child: child, Via: via(path), hash: hash(child.Kind(), child.Name)})
		}
		if a.kept += len(list); a.kept > maxDerived {
			clear(a.derived)
			a.kept = len(list)
		}
		a.derived[r] = list
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
