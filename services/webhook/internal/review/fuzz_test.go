package review

import (
	"strings"
	"testing"
)

// FuzzDecodeAndDecide verifies that every input is decided or refused, and that a subject without a role is never
// allowed.
func FuzzDecodeAndDecide(f *testing.F) {
	f.Add([]byte(asked), "")
	f.Add([]byte(strings.Replace(asked, `"extra":{"k":["v"]}`, `"extra":{"iam.miloapis.com/parent-api-group":["resourcemanager.miloapis.com"],`+
		`"iam.miloapis.com/parent-type":["Project"],"iam.miloapis.com/parent-name":["acme"]}`, 1)), "acme")
	f.Add([]byte(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","spec":{"group":["a"],"user":"system:x","resourceAttributes":`+
		`{"verb":"deletecollection","resource":"pods","fieldSelector":{"requirements":[{"key":"metadata.name","operator":"In","values":["x"]}]}}}}`), "")
	x := worldOf()
	f.Fuzz(func(t *testing.T, body []byte, project string) {
		r, err := Decode(body)
		if err != nil {
			return
		}
		for _, rules := range []*TrustRules{NewTrustRules(TrustRules{}), NewTrustRules(TrustRules{Subject: ByUIDOrName, Anonymous: true, TrustParents: true})} {
			request, err := r.ToAccessRequest(rules, project)
			if err != nil {
				continue
			}
			q, _ := request.ToQuery(rules, x.Registry())
			why, allowed := x.Decide(q)
			if allowed {
				t.Errorf("%s is allowed: %+v", body, why)
			}
			for _, a := range []Answer{AllowedAnswer(why), MissingPermissionAnswer(q.Permission)} {
				if _, err := a.Encode(r.Version); err != nil {
					t.Errorf("%+v: %v", a, err)
				}
			}
		}
	})
}
