package module

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
)

// Statement is what a decision takes one object to be, or that there is none.
type Statement struct {
	change event.Change
	// is stands for what was decided from; read finds out the same of another state.
	is   func() (essence, error)
	read func(event.Change) (essence, error)
}

// essence stands for an object as far as decisions depend on it; the zero value for one that is not there.
type essence struct {
	// declared is what others say in it, recorded what we have; zero where we record nothing.
	declared, recorded [sha256.Size]byte
}

// NewStatement says that an object is as the view had it. The function tells what of it matters: what
// others declare, and what we have recorded in it.
func NewStatement[T any](o view.Object[T], matters func(*T) (declared, recorded any)) Statement {
	of := func(uid string, value *T) (e essence, err error) {
		declared, recorded := matters(value)
		if e.declared, err = sum([]any{uid, declared}); err == nil && recorded != nil {
			e.recorded, err = sum(recorded)
		}
		return e, err
	}
	return Statement{
		change: o.Change,
		is: func() (essence, error) {
			if o.UID == "" || o.Deleted || o.Value == nil {
				return essence{}, nil
			}
			return of(o.UID, o.Value)
		},
		read: func(c event.Change) (essence, error) {
			value := new(T)
			if c.Deleted {
				return essence{}, nil
			}
			if err := c.Decode(value); err != nil {
				return essence{}, err
			}
			return of(c.UID, value)
		},
	}
}

// outdated is what the view has come to know only after what was decided: [reconcile.ErrStale].
func outdated(c event.Change) Statement {
	return Statement{change: c, is: func() (essence, error) { return essence{}, fmt.Errorf("%s: %w", c.Key, reconcile.ErrStale) }}
}

// Change is the state that the statement is about.
func (s Statement) Change() event.Change { return s.change }

// Same reports whether two statements are of the same object, which others have not changed in between.
func (s Statement) Same(other Statement) bool {
	is, err := s.is()
	was, otherErr := other.is()
	return s.change.Key == other.change.Key && err == nil && otherErr == nil && is == was
}

func sum(of any) ([sha256.Size]byte, error) {
	data, err := json.Marshal(of)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encoding what an object declares: %w", err)
	}
	return sha256.Sum256(data), nil
}

// StoreStatement says of a Store what its model and its OpenFGA store depend on. Of its finalizers that is ours: by
// tuple-sync's nothing is given.
func StoreStatement(o Store) Statement {
	return NewStatement(o, func(s *corev1alpha1.Store) (declared, recorded any) {
		declared = []any{
			times(s.ObjectMeta), slices.Contains(s.Finalizers, corev1alpha1.StoreFinalizer), s.Annotations[iaplv1alpha1.RolesAnnotation],
			s.Spec.CoreModule, s.Spec.Discovery, s.Spec.DeletionPolicy, s.Spec.Adoption,
		}
		return declared, []any{s.Status.StoreID, s.Status.Adopted, s.Status.AuthorizationModelID, s.Status.Live, s.Status.Modules}
	})
}

// ModelStatement says the same of an AuthorizationModel.
func ModelStatement(o Model) Statement {
	return NewStatement(o, func(m *corev1alpha1.AuthorizationModel) (declared, recorded any) {
		var generated []string
		for _, name := range corev1alpha1.GeneratedAnnotations() {
			generated = append(generated, m.Annotations[name])
		}
		return []any{times(m.ObjectMeta), generated, m.Spec.StoreRef, m.Spec.Model}, m.Status.Live
	})
}

func times(o metav1.ObjectMeta) any { return []any{o.CreationTimestamp, o.DeletionTimestamp} }
