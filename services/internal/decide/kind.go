package decide

import (
	"maps"
	mathbits "math/bits"
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// kind is a registered one.
type kind struct {
	typ string
	// held are the permissions that can be held on objects of it.
	held    bits
	parents map[string]*kind
}

// isBelow says whether objects of a type may be above those of the kind, at whatever distance.
func (k *kind) isBelow(typ string) bool {
	return k.parents[typ] != nil || k.isBelowBeside(typ, map[*kind]bool{})
}

// isBelowBeside says so of the ways that lead by no kind that was visited.
func (k *kind) isBelowBeside(typ string, visited map[*kind]bool) bool {
	if visited[k] {
		return false
	}
	visited[k] = true
	for _, parent := range k.parents {
		if parent.typ == typ || parent.isBelowBeside(typ, visited) {
			return true
		}
	}
	return false
}

// SetProtectedResource tells of one. Those in force depend on each other, so all are judged anew.
func (x *Index) SetProtectedResource(name string, p *iamv1alpha1.ProtectedResource) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.resources[name]
	if alive(p) {
		x.resources[name] = p
	} else {
		delete(x.resources, name)
	}
	if same := was == nil && !alive(p) || was != nil && alive(p) && iam.JudgedAlike(was, p); !x.loading && !same {
		x.register()
	}
}

// register judges all, and works out anew what roles give.
func (x *Index) register() {
	x.registry = iam.Register(slices.Collect(maps.Values(x.resources)))
	kinds := x.registry.Kinds()
	x.kinds, x.permissions, x.names, x.owners = map[string]*kind{}, map[string]int{}, nil, nil
	for _, k := range kinds {
		x.kinds[k.Type] = &kind{typ: k.Type, parents: map[string]*kind{}}
		for _, permission := range k.Permissions {
			x.permissions[permission], x.names, x.owners = len(x.names), append(x.names, permission), append(x.owners, k.Type)
		}
	}
	for _, k := range kinds {
		x.kinds[k.Type].held = x.bitsOf(k.AtAndBelow())
		for _, parent := range k.Parents {
			x.kinds[k.Type].parents[parent.Type] = x.kinds[parent.Type]
		}
	}
	x.inherit(slices.Collect(maps.Values(x.roles)))
}

// Registry is what the ProtectedResources make together.
func (x *Index) Registry() *iam.Registry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.registry
}

// bits are a set of permissions, by their numbers.
type bits []uint64

const word = 64

// bitsOf leaves out permissions that nobody registers.
func (x *Index) bitsOf(permissions []string) bits {
	b := make(bits, len(x.permissions)/word+1)
	for _, permission := range permissions {
		if n, known := x.permissions[permission]; known {
			b.set(n)
		}
	}
	return b
}

func (b bits) has(n int) bool { return n/word < len(b) && b[n/word]&(1<<(n%word)) != 0 }

func (b bits) set(n int) { b[n/word] |= 1 << (n % word) }

func (b bits) add(other bits) {
	for i, w := range other {
		b[i] |= w
	}
}

// common is how many two sets have in common.
func (b bits) common(other bits) (n int) {
	for i, w := range b[:min(len(b), len(other))] {
		n += mathbits.OnesCount64(w & other[i])
	}
	return n
}

// exceeds says whether a set has something of another that is not in a third.
func (b bits) exceeds(with, without bits) bool {
	for i, w := range b[:min(len(b), len(with))] {
		if w&with[i]&^without[i] != 0 {
			return true
		}
	}
	return false
}

// namesOf are the permissions of one set that another has, too, but not a third.
func (x *Index) namesOf(b, with, without bits) []string {
	var names []string
	for n, name := range x.names {
		if b.has(n) && with.has(n) && !without.has(n) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
