package decision

import (
	"context"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	fgatuple "github.com/openfga/openfga/pkg/tuple"
)

// WithRequestTuples returns a reader that also returns the contextual tuples of a request.
func WithRequestTuples(stored Reader, tuples []*openfgav1.TupleKey) Reader {
	if len(tuples) == 0 {
		return stored
	}
	return requestReader{stored, tuples}
}

type requestReader struct {
	stored Reader
	tuples []*openfgav1.TupleKey
}

// ReadRelation implements [Reader]. As in OpenFGA, a contextual tuple of a single user replaces the stored one.
func (r requestReader) ReadRelation(ctx context.Context, object, relation, user string) (all []*openfgav1.TupleKey, more bool, err error) {
	for _, t := range r.tuples {
		if t.GetObject() == object && t.GetRelation() == relation && (user == "" || t.GetUser() == user) {
			all = append(all, t)
		}
	}
	if len(all) > 0 && user != "" && !fgatuple.IsTypedWildcard(user) {
		return all, false, nil
	}
	stored, more, err := r.stored.ReadRelation(ctx, object, relation, user)
	return append(all, stored...), more, err
}
