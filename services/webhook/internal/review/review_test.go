package review

import (
	"reflect"
	"strings"
	"testing"
)

const asked = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{"creationTimestamp":null},"spec":{` +
	`"resourceAttributes":{"namespace":"one","verb":"get","group":"a","version":"v1","resource":"trees","name":"oak","labelSelector":{"rawSelector":"x=y"}},` +
	`"user":"alice","uid":"u","groups":["system:authenticated"],"extra":{"k":["v"]}},"status":{"allowed":true}}`

func TestDecodeReadsBothVersions(t *testing.T) {
	for version, body := range map[string]string{
		v1: asked, v1beta1: strings.NewReplacer("k8s.io/v1", "k8s.io/v1beta1", `"groups"`, `"group"`).Replace(asked),
	} {
		got, err := Decode([]byte(body))
		want := &Review{
			Version: version, User: "alice", UID: "u", Groups: []string{"system:authenticated"}, Extra: map[string][]string{"k": {"v"}},
			Resource: &ResourceAttributes{Namespace: "one", Verb: "get", Group: "a", Resource: "trees", Name: "oak"},
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", version, got, err)
		}
	}
}

func TestDecodeReadsGroupsByVersion(t *testing.T) {
	for _, body := range []string{strings.Replace(asked, `"groups"`, `"group"`, 1), strings.Replace(asked, "k8s.io/v1", "k8s.io/v1beta1", 1)} {
		if got, err := Decode([]byte(body)); err != nil || len(got.Groups) > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestDecodeRefusesInvalidReview(t *testing.T) {
	with := func(before, after string) string { return strings.Replace(asked, before, after, 1) }
	long := `["` + strings.Repeat(`g","`, maxGroups) + `g"]`
	for what, body := range map[string]string{
		"nothing": "", "no JSON": "{", "two": asked + asked, "a list": "[]", "another kind": with("SubjectAccessReview", "AdmissionReview"),
		"another version": with("k8s.io/v1", "k8s.io/v2"), "no version": with(`"apiVersion"`, `"v"`),
		"something said twice":       with(`"user":"alice"`, `"user":"alice","user":"bob"`),
		"a name that is a number":    with(`"name":"oak"`, `"name":7`),
		"no text":                    with("oak", "\xff"),
		"very deep":                  with(`"user":"alice"`, `"user":"alice","x":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)),
		"neither resource nor path":  with(`"resourceAttributes"`, `"x"`),
		"both resource and path":     with(`"user":"alice"`, `"user":"alice","nonResourceAttributes":{"path":"/","verb":"get"}`),
		"more groups than there are": with(`["system:authenticated"]`, long),
	} {
		if got, err := Decode([]byte(body)); err == nil {
			t.Errorf("%s: got %+v, want an error", what, got)
		}
	}
}

// TestDeleteCollectionNameComesFromSelector verifies that only deletecollection takes its name from the selector.
func TestDeleteCollectionNameComesFromSelector(t *testing.T) {
	one := selectorRequirement{"metadata.name", "In", []string{"oak"}}
	for what, c := range map[string]struct {
		verb     string
		selector fieldSelector
		want     string
	}{
		"one":                     {"deletecollection", fieldSelector{Requirements: []selectorRequirement{one}}, "oak"},
		"one and more":            {"deletecollection", fieldSelector{Requirements: []selectorRequirement{one, {"spec.x", "In", []string{"y"}}}}, "oak"},
		"two names":               {"deletecollection", fieldSelector{Requirements: []selectorRequirement{{"metadata.name", "In", []string{"oak", "elm"}}}}, ""},
		"one twice":               {"deletecollection", fieldSelector{Requirements: []selectorRequirement{one, one}}, ""},
		"all but one":             {"deletecollection", fieldSelector{Requirements: []selectorRequirement{{"metadata.name", "NotIn", []string{"oak"}}}}, ""},
		"a field of another name": {"deletecollection", fieldSelector{Requirements: []selectorRequirement{{"metadata.namespace", "In", []string{"oak"}}}}, ""},
		"what is not read":        {"deletecollection", fieldSelector{Raw: "metadata.name!=oak", Requirements: []selectorRequirement{one}}, ""},
		"another verb":            {"list", fieldSelector{Requirements: []selectorRequirement{one}}, ""},
	} {
		if got := (&ResourceAttributes{Verb: c.verb, FieldSelector: c.selector}).singleObjectName(); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestAnswerHasRequestedVersion(t *testing.T) {
	for version, c := range map[string]struct {
		answer Answer
		want   string
	}{
		v1:      {Answer{Allowed: true, Reason: "x"}, `"status":{"allowed":true,"reason":"x"}}`},
		v1beta1: {Answer{Denied: true, EvaluationError: "y\xff"}, `"status":{"allowed":false,"denied":true,"evaluationError":"y"}}`},
	} {
		got, err := c.answer.Encode(version)
		if want := `{"kind":"SubjectAccessReview","apiVersion":"` + version + `","metadata":{},"spec":{},` + c.want; err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	if got, err := (Answer{Reason: strings.Repeat("x", 1000)}).Encode(v1); err != nil || len(got) > 700 {
		t.Errorf("an answer has %d bytes, %v", len(got), err)
	}
}
