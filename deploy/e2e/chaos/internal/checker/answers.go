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

// question is a request to a webhook: may this subject use this verb on this resource?
type question struct {
	Subject  asker  `json:"subject"`
	Verb     string `json:"verb"`
	Resource asked  `json:"resource"`

	target workload.Target
}

type asker struct {
	User   string   `json:"user,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

type asked struct {
	Group     string `json:"apiGroup"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the question for people.
func (q question) String() string {
	return fmt.Sprintf("%s %v %s %s %s/%s", q.Subject.User, q.Subject.Groups, q.Verb, q.Resource.Resource, q.Resource.Namespace, q.Resource.Name)
}

// allQuestions returns the questions about every subject and every object of the workload.
func allQuestions() (all []question) {
	who := []asker{{User: "nobody", Groups: []string{workload.TokenGroup}}}
	for _, name := range workload.IAMUserNames() {
		who = append(who, asker{User: name})
	}
	for _, t := range workload.Targets() {
		for _, name := range t.Names() {
			namespace, name, _ := strings.Cut(name, "/")
			for _, verb := range workload.Verbs() {
				for _, s := range who {
					all = append(all, question{s, verb, asked{t.Group, t.Resource.Resource, namespace, name}, t})
				}
			}
		}
	}
	return all
}

// permissionOf returns the permission that a question needs.
func permissionOf(q question) string {
	return fmt.Sprintf("%s/%s.%s", q.target.Group, q.target.Resource.Resource, q.Verb)
}

// isAllowed reports whether the declared tuples allow it: on the object, on all objects of its kind, or on a parent.
func (a *access) isAllowed(q question) bool {
	permission := hashOf(permissionOf(q))[:12]
	objects := []string{objectOf(q.target, q.Resource.Namespace+"/"+q.Resource.Name)}
	for i := 0; i < len(objects); i++ {
		of, _, isObject := strings.Cut(objects[i], ":")
		if slices.ContainsFunc(a.held[objects[i]+"#b"], func(grant string) bool { return a.gives(grant, permission, q.Subject) }) {
			return true
		}
		if isObject && of != iamPrefix+"Root" {
			objects = append(append(objects, rootOf(of)), a.held[objects[i]+"#p"]...)
		}
	}
	return false
}

// gives reports whether a grant gives a permission to a subject.
func (a *access) gives(grant, permission string, to asker) bool {
	user := iamUser + to.User
	return slices.ContainsFunc(a.held[grant+"#r"], func(role string) bool { return len(a.held[role+"#"+permission]) > 0 }) &&
		slices.ContainsFunc(a.held[grant+"#u"], func(subject string) bool {
			return subject == user || slices.Contains(a.held[subject], user) || slices.ContainsFunc(to.Groups, func(g string) bool {
				return subject == tokenGroup(g)
			})
		})
}

// checkAnswers requires that every webhook answers all questions as declared.
func checkAnswers(ctx context.Context, w *World) error {
	a := newAccess(w.Snapshot)
	var errs []error
	for _, url := range w.Webhooks() {
		var wrong []string
		for _, q := range allQuestions() {
			allowed, err := ask(ctx, url, q)
			if err != nil {
				return fmt.Errorf("asking the webhook at %s: %w", url, err)
			}
			if want := a.isAllowed(q); allowed != want {
				wrong = append(wrong, fmt.Sprintf("%s: %t", q, allowed))
			}
		}
		if len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("the webhook at %s gives %d wrong answers%s", url, len(wrong), few(wrong)))
		}
	}
	return errors.Join(errs...)
}

// ask calls CheckAccess.
func ask(ctx context.Context, url string, q question) (allowed bool, err error) {
	var answer struct{ Allowed bool }
	err = post(ctx, url+"/entail.access.v1.AccessService/CheckAccess", q, &answer)
	return answer.Allowed, err
}

// review sends a SubjectAccessReview, as the API server does.
func review(ctx context.Context, url string, q question) (allowed bool, err error) {
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
	err = post(ctx, url+"/apis/authorization.k8s.io/v1/subjectaccessreviews", asked, &answer)
	return answer.Status.Allowed, err
}

// post sends a request as JSON, and reads the answer.
func post(ctx context.Context, url string, question, answer any) error {
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
