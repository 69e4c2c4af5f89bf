//go:build integration

package impliedrole_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

const (
	// fewWorlds is the number of random worlds that are compared with Kubernetes. ENTAIL_ROUNDS sets another number.
	fewWorlds = 8
	// converged bounds the wait for one world, on a busy machine.
	converged = time.Minute
)

// accessGroup is the API group of the test resources. Exactly one role permits to read each of them.
const accessGroup = "access.test"

// requestSubject is a subject, in the form of the API and in the form of Kubernetes.
type requestSubject struct {
	subject *inferencev1.Subject
	groups  []string
	is      authenticationv1.UserInfo
}

// rbacFixture is one namespace with roles, rules, and bindings of every kind.
type rbacFixture struct {
	*testEnv
	random *rand.Rand
	client inferencev1connect.InferenceServiceClient
	askers []requestSubject
	roles  []infer.Role
}

// TestAnswersAgreeWithKubernetes makes random worlds and damages the generated bindings. It compares every answer with
// the access that the API server grants.
func TestAnswersAgreeWithKubernetes(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	client := b.client(b.serve())
	for i := range clusterRoles {
		createRoleWithPermission(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("access-c%d", i)}}, b)
	}
	first := seeds.FirstSeed(t)
	for i := range seeds.RoundCount(t, fewWorlds) {
		seed := first + uint64(i)
		w := &rbacFixture{testEnv: b.in(fmt.Sprintf("access-%d", i)), random: rand.New(rand.NewPCG(seed, 0)), client: client}
		w.populate()
		w.agree(seed, "at first")
		w.harm()
		w.agree(seed, "after harm")
		w.leave()
	}
}

// createRoleWithPermission makes a role with a permission that no other role has.
func createRoleWithPermission(t testing.TB, role *rbacv1.ClusterRole, b *testEnv) {
	t.Helper()
	role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{accessGroup}, Resources: []string{role.Name}}}
	var err error
	if role.Namespace == "" {
		_, err = b.typed.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	} else {
		_, err = b.typed.RbacV1().Roles(role.Namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: role.ObjectMeta, Rules: role.Rules}, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// populate makes roles, rules, bindings and askers.
func (w *rbacFixture) populate() {
	w.T.Helper()
	w.roles = []infer.Role{role("ClusterRole/access-c0"), role("ClusterRole/access-c1")}
	for i := range 5 {
		name := fmt.Sprintf("access-r%d", i)
		createRoleWithPermission(w.T, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}, w.testEnv)
		w.roles = append(w.roles, role(name))
	}
	user := func(name string) *inferencev1.Subject { return &inferencev1.Subject{Kind: "User", Name: name} }
	account := func(namespace string) *inferencev1.Subject {
		return &inferencev1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "bot"}
	}
	w.ask(user("alice"), "alice")
	w.ask(user("bob"), "bob", "team")
	w.ask(user("system:anonymous"), "system:anonymous")
	w.ask(account(w.namespace), "system:serviceaccount:"+w.namespace+":bot")
	w.ask(account("elsewhere"), "system:serviceaccount:elsewhere:bot")
	w.ask(user("system:serviceaccount:"+w.namespace+":bot"), "system:serviceaccount:"+w.namespace+":bot")
	w.ask(&inferencev1.Subject{Kind: "Group", Name: "team"}, "somebody", "team")
	for i := range 6 {
		if parent, child := w.anyRole(), w.anyRole(); parent != child {
			w.rule(fmt.Sprintf("rule-%d", i), parent, child, false)
		}
	}
	for i := range sources {
		w.source(fmt.Sprintf("source-%d", i))
	}
	for i := range w.random.IntN(3) {
		r := w.roles[i%clusterRoles]
		everywhere := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.namespace, i)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: r.Kind(), Name: r.Name}, Subjects: w.anybody(true),
		}
		if _, err := w.typed.RbacV1().ClusterRoleBindings().Create(w.T.Context(), everywhere, metav1.CreateOptions{}); err != nil {
			w.T.Fatal(err)
		}
	}
}

const (
	sources      = 5
	clusterRoles = 2
)

// ask adds an asker. A SelfSubjectReview returns the groups of the user.
func (w *rbacFixture) ask(subject *inferencev1.Subject, user string, groups ...string) {
	w.T.Helper()
	cfg := w.Kube.AdminConfig()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		w.T.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(w.T.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if user == "system:anonymous" && apierrors.IsForbidden(err) { // An anonymous user may not make this review.
		review.Status.UserInfo, err = authenticationv1.UserInfo{Username: user, Groups: []string{"system:unauthenticated"}}, nil
	}
	if err != nil {
		w.T.Fatal(err)
	}
	w.askers = append(w.askers, requestSubject{subject, groups, review.Status.UserInfo})
}

func (w *rbacFixture) anyRole() infer.Role { return w.roles[w.random.IntN(len(w.roles))] }

func (w *rbacFixture) anySource() string { return fmt.Sprintf("source-%d", w.random.IntN(sources)) }

// anybody returns random subjects. With everywhere, they suit a binding without a namespace.
func (w *rbacFixture) anybody(everywhere bool) []rbacv1.Subject {
	all := []rbacv1.Subject{
		subject("alice"), subject("bob"), subject("group:team"), subject("sa:" + w.namespace + ":bot"), subject("sa:elsewhere:bot"),
	}
	for _, user := range []string{"system:anonymous", "system:serviceaccount:" + w.namespace + ":bot"} {
		all = append(all, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
	}
	groups := []string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:serviceaccounts:" + w.namespace}
	for _, group := range groups {
		all = append(all, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group})
	}
	if !everywhere {
		all = append(all, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "bot"})
	}
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:w.random.IntN(3)]
}

// source makes a binding of random subjects to a random role.
func (w *rbacFixture) source(name string) {
	w.T.Helper()
	r := w.anyRole()
	err := w.create(w.T.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: w.anybody(false),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: r.Kind(), Name: r.Name},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.T.Fatal(err)
	}
}

// attempt ignores the errors NotFound and Conflict, because the object may have changed.
func (w *rbacFixture) attempt(err error) {
	w.T.Helper()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		w.T.Fatal(err)
	}
}

// harm delays, strips and deletes generated bindings, and changes rules and sources meanwhile.
func (w *rbacFixture) harm() {
	w.T.Helper()
	api, ctx := w.bindings(), w.T.Context()
	patch := func(name, patch string) {
		_, err := api.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		w.attempt(err)
	}
	remove := func(name string) { w.attempt(api.Delete(ctx, name, metav1.DeleteOptions{})) }
	for _, binding := range w.read(w.allBindings()) {
		if !binding.IsGenerated() && w.random.IntN(4) > 0 {
			continue
		}
		switch name := binding.Name; w.random.IntN(8) {
		case 0:
			patch(name, held)
		case 1:
			patch(name, held)
			remove(name)
		case 2:
			patch(name, `{"metadata":{"ownerReferences":null}}`)
		case 3:
			patch(name, `{"metadata":{"labels":null,"annotations":null,"ownerReferences":null}}`)
		case 4:
			patch(name, `{"subjects":[{"kind":"ServiceAccount","name":"bot","namespace":"elsewhere"}]}`)
		case 5:
			remove(name)
		}
	}
	for range 2 {
		name := fmt.Sprintf("rule-%d", w.random.IntN(6))
		w.attempt(w.testEnv.rules().Delete(ctx, name, metav1.DeleteOptions{}))
		remove(w.anySource())
		w.source(w.anySource())
	}
	w.source("ir-forged-" + fmt.Sprint(w.random.IntN(9)) + "-abcdefgh234567ab")
}

// agree waits until every answer agrees with Kubernetes.
func (w *rbacFixture) agree(seed uint64, when string) {
	w.T.Helper()
	testenv.Eventually(w.T, converged, func() error {
		var group errgroup.Group
		for _, a := range w.askers {
			group.Go(func() error {
				if err := w.compare(a); err != nil {
					return fmt.Errorf("world %d, %s: %s %s in %v: %w", seed, when, a.subject.GetKind(), a.subject.GetName(), a.is.Groups, err)
				}
				return nil
			})
		}
		return group.Wait()
	})
}

// compare compares all answers about one asker.
func (w *rbacFixture) compare(a requestSubject) error {
	ctx := w.T.Context()
	effective, err := w.client.ListEffectiveRoles(ctx, &inferencev1.ListEffectiveRolesRequest{Namespace: w.namespace, Subject: a.subject, Groups: a.groups})
	if isAnswerError(err) {
		return err
	}
	for _, r := range w.roles {
		allowed, err := w.allows(a, r)
		if err != nil {
			return err
		}
		m := &inferencev1.Role{Kind: r.Kind(), Name: r.Name}
		explained, err := w.client.ExplainRole(ctx, &inferencev1.ExplainRoleRequest{Namespace: w.namespace, Subject: a.subject, Groups: a.groups, Role: m})
		if isAnswerError(err) {
			return err
		}
		holders, err := w.client.WhoHasRole(ctx, &inferencev1.WhoHasRoleRequest{Namespace: w.namespace, Role: m, PageSize: 1000})
		if isAnswerError(err) {
			return err
		}
		listed := slices.ContainsFunc(effective.GetRoles(), func(e *inferencev1.EffectiveRole) bool { return text(e.GetRole()) == r.String() })
		holds := slices.ContainsFunc(holders.GetHolders(), func(h *inferencev1.Holder) bool { return a.isA(h.GetSubject()) })
		if explained.GetHeld() != allowed || listed != allowed || holds != allowed {
			return fmt.Errorf("role %s: Kubernetes %v; explained %v, effective %v, among holders %v", r, allowed, explained.GetHeld(), listed, holds)
		}
	}
	return nil
}

// isAnswerError reports whether an error is no answer. For a subject or a role that nothing names, "not found" means no.
func isAnswerError(err error) bool { return err != nil && connect.CodeOf(err) != connect.CodeNotFound }

// isA reports whether Kubernetes matches the asker with a subject.
func (a requestSubject) isA(s *inferencev1.Subject) bool {
	switch s.GetKind() {
	case rbacv1.UserKind:
		return s.GetName() == a.is.Username
	case rbacv1.GroupKind:
		return slices.Contains(a.is.Groups, s.GetName())
	}
	return "system:serviceaccount:"+s.GetNamespace()+":"+s.GetName() == a.is.Username
}

// allows reports whether the API server allows the access that only this role permits.
func (w *rbacFixture) allows(a requestSubject, r infer.Role) (bool, error) {
	review, err := w.typed.AuthorizationV1().SubjectAccessReviews().Create(w.T.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: a.is.Username, Groups: a.is.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.namespace, Verb: "get", Group: accessGroup, Resource: r.Name},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// leave removes the bindings that would count in the next world.
func (w *rbacFixture) leave() {
	w.T.Helper()
	for i := range 2 {
		w.attempt(w.typed.RbacV1().ClusterRoleBindings().Delete(w.T.Context(), fmt.Sprintf("%s-%d", w.namespace, i), metav1.DeleteOptions{}))
	}
}
