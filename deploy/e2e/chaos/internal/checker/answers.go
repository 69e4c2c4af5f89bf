package checker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// accessQuestion is a request to a webhook: may this subject use this verb on this resource?
type accessQuestion struct {
	Subject  questionSubject  `json:"subject"`
	Verb     string           `json:"verb"`
	Resource questionResource `json:"resource"`

	target workload.GrantTarget
}

type questionSubject struct {
	User   string   `json:"user,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

type questionResource struct {
	Group     string `json:"apiGroup"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the question for people.
func (q accessQuestion) String() string {
	return fmt.Sprintf("%s %v %s %s %s/%s", q.Subject.User, q.Subject.Groups, q.Verb, q.Resource.Resource, q.Resource.Namespace, q.Resource.Name)
}

// allQuestions returns the questions about every subject and every object of the workload.
func allQuestions() (all []accessQuestion) {
	who := []questionSubject{{User: "nobody", Groups: []string{workload.TokenGroup}}}
	for _, name := range workload.IAMUserNames() {
		who = append(who, questionSubject{User: name})
	}
	for _, t := range workload.AllTargets() {
		for _, name := range t.ObjectNames() {
			namespace, name, _ := strings.Cut(name, "/")
			for _, verb := range workload.AllVerbs() {
				for _, s := range who {
					all = append(all, accessQuestion{s, verb, questionResource{t.Group, t.Resource.Resource, namespace, name}, t})
				}
			}
		}
	}
	return all
}

// permissionOf returns the permission that a question needs.
func permissionOf(q accessQuestion) string {
	return fmt.Sprintf("%s/%s.%s", q.target.Group, q.target.Resource.Resource, q.Verb)
}

// isAllowed reports whether the declared tuples allow it: on the object, on all objects of its kind, or on a parent.
func (a *declaredIAMAccess) isAllowed(q accessQuestion) bool {
	permission := sha256Hex(permissionOf(q))[:12]
	objects := []string{openFGAObject(q.target, q.Resource.Namespace+"/"+q.Resource.Name)}
	for i := 0; i < len(objects); i++ {
		of, _, isObject := strings.Cut(objects[i], ":")
		if slices.ContainsFunc(a.held[objects[i]+"#b"], func(grant string) bool { return a.isPermittedByGrant(grant, permission, q.Subject) }) {
			return true
		}
		if isObject && of != iamPrefix+"Root" {
			objects = append(append(objects, rootObjectOf(of)), a.held[objects[i]+"#p"]...)
		}
	}
	return false
}

// isPermittedByGrant reports whether a grant gives a permission to a subject.
func (a *declaredIAMAccess) isPermittedByGrant(grant, permission string, to questionSubject) bool {
	user := iamUser + to.User
	return slices.ContainsFunc(a.held[grant+"#r"], func(role string) bool { return len(a.held[role+"#"+permission]) > 0 }) &&
		slices.ContainsFunc(a.held[grant+"#u"], func(subject string) bool {
			return subject == user || slices.Contains(a.held[subject], user) || slices.ContainsFunc(to.Groups, func(g string) bool {
				return subject == tokenGroupUserset(g)
			})
		})
}

// checkAnswers requires that every webhook answers all questions as declared.
func checkAnswers(ctx context.Context, w *CheckedSystem) error {
	a := newDeclaredAccess(w.Snapshot)
	var errs []error
	for _, url := range w.Webhooks() {
		var wrong []string
		for _, q := range allQuestions() {
			allowed, err := askCheckAccess(ctx, url, q)
			if err != nil {
				return fmt.Errorf("asking the webhook at %s: %w", url, err)
			}
			if want := a.isAllowed(q); allowed != want {
				wrong = append(wrong, fmt.Sprintf("%s: %t", q, allowed))
			}
		}
		if len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("the webhook at %s gives %d wrong answers%s", url, len(wrong), firstFew(wrong)))
		}
	}
	return errors.Join(errs...)
}

// askCheckAccess calls CheckAccess.
func askCheckAccess(ctx context.Context, url string, q accessQuestion) (allowed bool, err error) {
	var answer struct{ Allowed bool }
	err = postJSON(ctx, url+"/entail.access.v1.AccessService/CheckAccess", q, &answer)
	return answer.Allowed, err
}

// askSubjectAccessReview sends a SubjectAccessReview, as the API server does.
func askSubjectAccessReview(ctx context.Context, url string, q accessQuestion) (allowed bool, err error) {
	asked := authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: q.Subject.User, UID: q.Subject.User, Groups: q.Subject.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: q.Verb, Group: q.target.Resource.Group, Resource: q.Resource.Resource, Namespace: q.Resource.Namespace, Name: q.Resource.Name,
			},
		},
	}
	var answer authorizationv1.SubjectAccessReview
	err = postJSON(ctx, url+"/apis/authorization.k8s.io/v1/subjectaccessreviews", asked, &answer)
	return answer.Status.Allowed, err
}

// postJSON sends a request as JSON, and reads the answer.
func postJSON(ctx context.Context, url string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}
