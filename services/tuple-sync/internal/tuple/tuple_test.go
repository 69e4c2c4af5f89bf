package tuple

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

func conditional(name, context string) corev1alpha1.Tuple {
	t := corev1alpha1.Tuple{Object: "doc:1", Relation: "viewer", User: "user:1", Condition: &corev1alpha1.TupleCondition{Name: name}}
	if context != "" {
		t.Condition.Context = &runtime.RawExtension{Raw: []byte(context)}
	}
	return t
}

func TestParseDeclaredNormalizes(t *testing.T) {
	for name, c := range map[string]struct {
		a, b corev1alpha1.Tuple
		same bool
	}{
		"order of fields":        {conditional("c", `{"a":1,"b":[true]}`), conditional("c", `{ "b":[true], "a":1 }`), true},
		"spelling of a number":   {conditional("c", `{"a":100}`), conditional("c", `{"a":1e2}`), true},
		"empty context and none": {conditional("c", `{}`), conditional("c", ""), true},
		"another value":          {conditional("c", `{"a":1}`), conditional("c", `{"a":2}`), false},
		"another name":           {conditional("c", ""), conditional("d", ""), false},
	} {
		if got := ParseDeclared(c.a) == ParseDeclared(c.b); got != c.same {
			t.Errorf("%s: equal is %v", name, got)
		}
	}
}

func TestTupleRoundTripsEveryForm(t *testing.T) {
	text := rapid.StringMatching(`[a-z]{1,5}`)
	rapid.Check(t, func(t *rapid.T) {
		declared := corev1alpha1.Tuple{Object: text.Draw(t, "object"), Relation: text.Draw(t, "relation"), User: text.Draw(t, "user")}
		if rapid.Bool().Draw(t, "conditional") {
			declared.Condition = &corev1alpha1.TupleCondition{Name: text.Draw(t, "name")}
			context := rapid.SampledFrom([]string{"", `{}`, `{"a":1.5}`, `{"a":"<&>","b":{"c":[null,true]}}`, `{"big":12345678}`}).Draw(t, "context")
			if context != "" {
				declared.Condition.Context = &runtime.RawExtension{Raw: []byte(context)}
			}
		}
		tuple := ParseDeclared(declared)
		if got := ParseDeclared(tuple.ToDeclared()); got != tuple {
			t.Errorf("%v is recorded as %v", tuple, got)
		}
		if got := FromOpenFGA(tuple.ToOpenFGA()); got != tuple {
			t.Errorf("%v is %v to OpenFGA", tuple, got)
		}
		if !proto.Equal(tuple.ToOpenFGA(), FromOpenFGA(tuple.ToOpenFGA()).ToOpenFGA()) {
			t.Errorf("%v has two forms for OpenFGA", tuple)
		}
	})
}

func TestParseDeclaredListDropsDuplicates(t *testing.T) {
	list := []corev1alpha1.Tuple{conditional("c", `{"a":1}`), conditional("d", ""), conditional("c", `{"a":1.0}`)}
	if got := ParseDeclaredList(list); len(got) != 2 || got[0].Condition != "c" || got[1].Condition != "d" {
		t.Errorf("got %v", got)
	}
}

func TestValidateRefusesNumbersThatOpenFGARounds(t *testing.T) {
	for context, valid := range map[string]bool{
		`{"n": 9007199254740993}`:                 false,
		`{"n": -9007199254740993}`:                false,
		`{"deep": [{"n": 9007199254740993}]}`:     false,
		`{"n": ` + strings.Repeat("9", 400) + `}`: false,
		`{"n": 9007199254740992}`:                 true,
		`{"n": 18014398509481984}`:                true,
		`{"n": 1.5, "m": 1e300, "z": -0}`:         true,
		`{"n": "9007199254740993"}`:               true,
	} {
		parsed := ParseDeclared(conditional("office_hours", context))
		err := parsed.Validate()
		if (err == nil) != valid {
			t.Errorf("%.60s: got %v, want valid=%t", context, err, valid)
		}
		if recorded := ParseDeclared(parsed.ToDeclared()); recorded != parsed {
			t.Errorf("%.60s: recorded as %+v, want %+v", context, recorded, parsed)
		}
	}
}
