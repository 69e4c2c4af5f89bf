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

// Labels and annotations of generated bindings.
const (
	// ManagedByLabel has the value ManagedBy.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "implied-role"
	// ImpliedLabel has the value "true".
	ImpliedLabel = "role.k8s.com/implied"
	implied      = "true"
	// IndependentLabel, with the value "true", makes a binding with a reserved name explicit.
	IndependentLabel = "role.k8s.com/independent"
	independent      = "true"
	// SourceLabel and ChildLabel hold hashes, because names of roles and bindings can be invalid as label values.
	SourceLabel = "role.k8s.com/source"
	ChildLabel  = "role.k8s.com/child"
	// SourceAnnotation, ParentAnnotation, ChildAnnotation and ViaAnnotation are for human readers.
	SourceAnnotation = "role.k8s.com/source-binding"
	ParentAnnotation = "role.k8s.com/parent-role"
	ChildAnnotation  = "role.k8s.com/child-role"
	ViaAnnotation    = "role.k8s.com/via"
)

// bootstrapping is the label of bindings that the API server creates for itself.
const bootstrapping = "kubernetes.io/bootstrapping"

const kindRoleBinding = "RoleBinding"

// prefix begins the names of generated bindings.
const prefix = "ir-"

// GeneratedName returns the name of the binding that the source generates for child. The hash covers lengths and texts, so
// different pairs get different names. The rest of the name is for human readers.
func GeneratedName(source string, child Role) string {
	const readable = 20
	return prefix + sanitizedNamePrefix(source, readable) + "-" + sanitizedNamePrefix(child.Name, readable) + "-" + shortHash(source, child.Kind(), child.Name)
}

var reserved = regexp.MustCompile(`^` + prefix + `[a-z0-9.-]*-[a-z2-7]{16}$`)

// IsReserved reports whether a name has the form of [GeneratedName]. Only this service may use such names.
func IsReserved(name string) bool { return reserved.MatchString(name) }

// sanitizedNamePrefix returns the beginning of a name, with every character that a generated name cannot hold replaced by "-".
func sanitizedNamePrefix(name string, limit int) string {
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

// fingerprint is a hash of 128 bits.
type fingerprint [16]byte

func computeFingerprint(texts ...string) fingerprint {
	var room [1024]byte
	data := room[:0]
	for _, text := range texts {
		data = binary.BigEndian.AppendUint32(data, uint32(len(text)))
		data = append(data, text...)
	}
	sum := sha256.Sum256(data)
	return fingerprint(sum[:len(fingerprint{})])
}

// shortHash returns 80 bits of the fingerprint as 16 letters and digits.
func shortHash(texts ...string) string {
	const bytes = 10
	sum := computeFingerprint(texts...)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:bytes]))
}

// fingerprintMetadata returns the fingerprint of the labels, annotations and owner reference that this service sets.
func fingerprintMetadata(labels, annotations map[string]string, owner metav1.OwnerReference) fingerprint {
	return computeFingerprint(
		labels[ManagedByLabel], labels[ImpliedLabel], labels[SourceLabel], labels[ChildLabel],
		annotations[SourceAnnotation], annotations[ParentAnnotation], annotations[ChildAnnotation], annotations[ViaAnnotation],
		owner.Name, string(owner.UID),
	)
}

// DesiredBinding is a binding that must exist because of its source.
type DesiredBinding struct {
	Name   string
	Source *Binding
	derivedRole
	// Paused means that only paused rules imply the binding. An existing one stays, but a missing one is not created.
	Paused bool
	// sourceHash is the hash of the source's name.
	sourceHash string
}

// derivedRole is a role that another role implies.
type derivedRole struct {
	Child Role
	// Via is the text of the shortest path, for human readers.
	Via  string
	hash string
}

// ToRoleBinding returns the binding as it must be. It copies only the subjects of the source: GitOps tools delete objects that
// carry their labels.
func (d *DesiredBinding) ToRoleBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kindRoleBinding},
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name, Namespace: d.Source.Namespace,
			Labels: map[string]string{ManagedByLabel: ManagedBy, ImpliedLabel: implied, SourceLabel: d.sourceHash, ChildLabel: d.hash},
			Annotations: map[string]string{
				SourceAnnotation: d.Source.Name, ParentAnnotation: d.Source.Role.String(), ChildAnnotation: d.Child.String(), ViaAnnotation: d.Via,
			},
			// Garbage collection removes the binding with its source, even while this service is down.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kindRoleBinding, Name: d.Source.Name, UID: d.Source.UID,
			}},
		},
		RoleRef: d.Child.toRoleRef(), Subjects: d.Source.Subjects,
	}
}

// ToBinding returns the [Binding] that decoding [DesiredBinding.ToRoleBinding] would give.
func (d *DesiredBinding) ToBinding() *Binding {
	return &Binding{
		Namespace: d.Source.Namespace, Name: d.Name, Role: d.Child, Subjects: d.Source.Subjects,
		Reserved: true, Source: d.Source.Name, Labelled: true, metadata: d.metadataFingerprint(),
	}
}

// metadataFingerprint returns the result of [fingerprintMetadata] for the object.
func (d *DesiredBinding) metadataFingerprint() fingerprint {
	return computeFingerprint(ManagedBy, implied, d.sourceHash, d.hash,
		d.Source.Name, d.Source.Role.String(), d.Child.String(), d.Via, d.Source.Name, string(d.Source.UID))
}

// matchesBinding reports whether a generated binding matches d. Labels and annotations that others added do not count.
func (d *DesiredBinding) matchesBinding(b *Binding) bool {
	return slices.Equal(b.Subjects, d.Source.Subjects) && b.metadata == d.metadataFingerprint()
}

// DesiredBindings lists the bindings that follow from the source, in the order of the roles that they grant.
func (rs *RuleSet) DesiredBindings(source *Binding) []DesiredBinding {
	if source == nil || !source.IsSource() {
		return nil
	}
	parent := source.Role
	derived := rs.derivedRoles(parent)
	if len(derived) == 0 {
		return nil
	}
	list, sourceHash := make([]DesiredBinding, len(derived)), shortHash(source.Name)
	for i, r := range derived {
		list[i] = DesiredBinding{
			Name: GeneratedName(source.Name, r.Child), Source: source, derivedRole: r, sourceHash: sourceHash,
			Paused: rs.free != rs.graph && !rs.free.CanReach(parent, r.Child),
		}
	}
	return list
}

// maxDerived bounds the derived roles that a rule set caches. A chain of as many roles would have a hundred thousand
// times as many derived roles.
const maxDerived = 200_000

// derivedRoles lists the roles that r implies, in order. The result is cached.
func (rs *RuleSet) derivedRoles(r Role) []derivedRole {
	a := rs.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	list, ok := a.derived[r]
	if !ok {
		for child, path := range rs.graph.Paths(r) {
			list = append(list, derivedRole{Child: child, Via: pathText(path), hash: shortHash(child.Kind(), child.Name)})
		}
		if a.kept += len(list); a.kept > maxDerived {
			clear(a.derived)
			a.kept = len(list)
		}
		a.derived[r] = list
	}
	return list
}

// pathText returns the text of a path. It shortens long paths in the middle.
func pathText(path []Role) string {
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
