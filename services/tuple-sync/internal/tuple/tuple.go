// Package tuple defines relationship tuples that compare with ==. It converts them from and to declared tuples and
// OpenFGA's form.
package tuple

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	fgatuple "github.com/openfga/openfga/pkg/tuple"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// ID identifies a tuple in OpenFGA. The condition does not belong to it.
type ID struct{ Object, Relation, User string }

// String returns the usual notation: object#relation@user.
func (i ID) String() string { return i.Object + "#" + i.Relation + "@" + i.User }

// Tuple is a tuple in a form that compares with ==.
type Tuple struct {
	ID
	// Condition is the name of a condition, empty for none.
	Condition string
	// Context holds the condition's context as canonical JSON, empty for none.
	Context string
}

// ParseDeclared converts a declared tuple. It never fails: it keeps a context that OpenFGA cannot hold, and [Tuple.Validate]
// returns the error.
func ParseDeclared(t corev1alpha1.Tuple) Tuple {
	parsed := Tuple{ID: ID{t.Object, t.Relation, t.User}}
	if t.Condition == nil {
		return parsed
	}
	parsed.Condition = t.Condition.Name
	if t.Condition.Context == nil || len(t.Condition.Context.Raw) == 0 {
		return parsed
	}
	var context structpb.Struct
	if err := cmp.Or(context.UnmarshalJSON(t.Condition.Context.Raw), checkExactIntegers(t.Condition.Context.Raw)); err != nil {
		parsed.Context = string(t.Condition.Context.Raw)
		return parsed
	}
	parsed.Context = canonicalContext(&context)
	return parsed
}

// ParseDeclaredList converts a list, and keeps the first of equal tuples.
func ParseDeclaredList(list []corev1alpha1.Tuple) []Tuple {
	if len(list) == 0 {
		return nil
	}
	seen := make(map[Tuple]struct{}, len(list))
	parsed := make([]Tuple, 0, len(list))
	for _, t := range list {
		p := ParseDeclared(t)
		if _, ok := seen[p]; !ok {
			seen[p] = struct{}{}
			parsed = append(parsed, p)
		}
	}
	return parsed
}

// FromOpenFGA converts a tuple from OpenFGA.
func FromOpenFGA(k *openfgav1.TupleKey) Tuple {
	return Tuple{
		ID:        ID{k.GetObject(), k.GetRelation(), k.GetUser()},
		Condition: k.GetCondition().GetName(), Context: canonicalContext(k.GetCondition().GetContext()),
	}
}

// canonicalContext returns one spelling for equal contexts, and "" for an empty one.
func canonicalContext(context *structpb.Struct) string {
	if len(context.GetFields()) == 0 {
		return ""
	}
	text, err := json.Marshal(context.AsMap())
	if err != nil {
		return err.Error() // JSON cannot hold the number; the text equals no other context.
	}
	return string(text)
}

// ToOpenFGA returns t in OpenFGA's form.
func (t Tuple) ToOpenFGA() *openfgav1.TupleKey {
	key := &openfgav1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User}
	if t.Condition == "" {
		return key
	}
	key.Condition = &openfgav1.RelationshipCondition{Name: t.Condition, Context: &structpb.Struct{}}
	if t.Context != "" {
		_ = key.GetCondition().GetContext().UnmarshalJSON([]byte(t.Context)) // Validate has refused other JSON before.
	}
	return key
}

// ToOpenFGAKeys converts tuples to OpenFGA's form.
func ToOpenFGAKeys(tuples []Tuple) []*openfgav1.TupleKey {
	keys := make([]*openfgav1.TupleKey, len(tuples))
	for i, t := range tuples {
		keys[i] = t.ToOpenFGA()
	}
	return keys
}

// ToDeclared returns t as objects declare and record it.
func (t Tuple) ToDeclared() corev1alpha1.Tuple {
	declared := corev1alpha1.Tuple{Object: t.Object, Relation: t.Relation, User: t.User}
	if t.Condition == "" {
		return declared
	}
	declared.Condition = &corev1alpha1.TupleCondition{Name: t.Condition}
	if t.Context != "" {
		declared.Condition.Context = &runtime.RawExtension{Raw: []byte(t.Context)}
	}
	return declared
}

// JSONSize estimates the bytes of t in an object's JSON.
func (t Tuple) JSONSize() int {
	const names = len(`{"object":"","relation":"","user":""},`)
	size := names + len(t.Object) + len(t.Relation) + len(t.User)
	if t.Condition != "" {
		size += len(`,"condition":{"name":"","context":}`) + len(t.Condition) + len(t.Context)
	}
	return size
}

// maxContext is the largest condition context that OpenFGA accepts, in bytes.
const maxContext = 32 * 1024

// Errors that are independent of the model.
var (
	errObject   = errors.New("the object must be type:id, without spaces or a second ':'")
	errAnyone   = errors.New("the object must be a single one, not type:*")
	errRelation = errors.New("the relation must be a name without ':', '#', '@' or spaces")
	errUser     = errors.New("the user must be type:id, type:id#relation or type:*, without spaces or a second ':'")
	errImplicit = errors.New("the tuple makes a userset a member of itself")
	errContext  = errors.New("the context of the condition must be a JSON object")
)

// Validate returns an error if t is malformed, whatever the model.
func (t Tuple) Validate() error {
	_, id := fgatuple.SplitObject(t.Object)
	switch {
	case !fgatuple.IsValidObject(t.Object):
		return errObject
	case id == fgatuple.Wildcard:
		return errAnyone
	case !fgatuple.IsValidRelation(t.Relation):
		return errRelation
	case !fgatuple.IsValidObject(t.User) && !fgatuple.IsValidUserset(t.User):
		return errUser
	case t.User == t.Object+"#"+t.Relation:
		return errImplicit
	case t.Context != "" && !strings.HasPrefix(t.Context, "{"):
		return errContext
	}
	if t.Context != "" {
		if err := checkExactIntegers([]byte(t.Context)); err != nil {
			return err
		}
	}
	key := t.ToOpenFGA()
	if size := proto.Size(key.GetCondition().GetContext()); size > maxContext {
		return fmt.Errorf("the context of the condition takes %d bytes of at most %d", size, maxContext)
	}
	return readableCause(key.Validate())
}

// checkExactIntegers returns an error for an integer in a context that OpenFGA would round: it holds numbers as float64.
func checkExactIntegers(context []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(context))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil //nolint:nilerr // The end, or a syntax error that the caller finds.
		}
		number, ok := token.(json.Number)
		if !ok || strings.ContainsAny(number.String(), ".eE") {
			continue
		}
		rounded, err := number.Float64() // It fails for more than 309 digits, which bounds SetString.
		integer, ok := new(big.Int), false
		if err == nil {
			_, ok = integer.SetString(number.String(), 10)
		}
		if !ok || new(big.Float).SetInt(integer).Cmp(big.NewFloat(rounded)) != 0 {
			return fmt.Errorf("context of the condition: OpenFGA rounds the number %.40s; write it as a string", number)
		}
	}
}

// readableCause returns the part of a field's error that helps a reader.
func readableCause(err error) error {
	var field interface {
		Field() string
		Reason() string
		Cause() error
	}
	switch {
	case !errors.As(err, &field):
		return err
	case field.Cause() != nil:
		return fmt.Errorf("%s: %w", strings.ToLower(field.Field()), readableCause(field.Cause()))
	}
	return fmt.Errorf("%s: %s", strings.ToLower(field.Field()), field.Reason())
}

// Compare orders IDs.
func (i ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(i.Object, other.Object), cmp.Compare(i.Relation, other.Relation), cmp.Compare(i.User, other.User))
}

// RefusalReason returns OpenFGA's message about a tuple without the tuple itself.
func RefusalReason(err error) string {
	text := status.Convert(err).Message()
	if _, reason, ok := strings.Cut(text, "Reason: "); ok {
		return reason
	}
	return text
}

// Write is a change of one store. Afterwards the store holds all of Add, and nothing of Remove that is not in Add.
type Write struct {
	StoreID string
	// ModelID is the model that additions must satisfy.
	ModelID     string
	Add, Remove []Tuple
	// Sure makes a removal fail if the store or its model is missing. Without it, such a store counts as empty.
	Sure bool
	// Term is the term of the deciding pass. One call never combines different terms.
	Term uint64
}
