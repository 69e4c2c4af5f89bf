//go:build integration

package webhook_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/webhook"
	"github.com/entail-dev/entail/services/webhook/internal/validating"
)

// mallory may write all objects of IAM. She has every right that the admission policies require, but not the verb
// escalate.
const mallory = "mallory"

// newGuardedBed starts a webhook with admission webhooks that the API server calls.
func newGuardedBed(t *testing.T) *bed {
	t.Helper()
	listener := testenv.ListenLoopback(t)
	b := newBedWith(t, func(c *webhook.Config) {
		c.Subject, c.Admission.Listener, c.Admission.URL = "uid-or-name", listener, "https://"+listener.Addr().String()
	})
	groups := []string{"iam.miloapis.com", "resourcemanager.miloapis.com"}
	b.malloryRole = b.Kube.GrantUser(t, "", mallory,
		rbacv1.PolicyRule{APIGroups: groups, Resources: []string{"*"}, Verbs: []string{"get", "create", "update", "bind"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"get", "patch"}})
	b.Kube.DeleteWebhooksAfter(t, validating.Name)
	return b
}

// try writes an object as mallory, as a dry run. It updates the object if it exists.
func (b *bed) try(kind kinds.Kind, name string, spec any) error {
	b.T.Helper()
	u := b.object(kind, name, spec)
	in := b.Kube.DynamicClientAs(b.T, mallory).Resource(kind.GroupVersionResource()).Namespace(u.GetNamespace())
	dry := []string{metav1.DryRunAll}
	is, err := in.Get(b.T.Context(), name, metav1.GetOptions{})
	switch {
	case err == nil:
		is.Object["spec"] = u.Object["spec"]
		_, err = in.Update(b.T.Context(), is, metav1.UpdateOptions{DryRun: dry})
	case apierrors.IsNotFound(err):
		_, err = in.Create(b.T.Context(), u, metav1.CreateOptions{DryRun: dry})
	}
	return err
}

// tries returns the refusal of a write by mallory, or "". It repeats the write after other errors.
func (b *bed) tries(kind kinds.Kind, name string, spec any) (refused string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		err := b.try(kind, name, spec)
		refused = ""
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "admission webhook") {
			refused, err = err.Error(), nil
		}
		return err
	})
	return refused
}

// attempt is a write that mallory tries.
type attempt struct {
	kind kinds.Kind
	name string
	spec any
}

// attempts returns all ways to give rights.
func attempts(acme, web string) map[string]attempt {
	bind := func(role string, on map[string]any) any {
		return map[string]any{
			"roleRef": map[string]any{"name": role}, "subjects": []any{subjectFromMessage("User", mallory, "m")}, "resourceSelector": on,
		}
	}
	on := func(kind, name, uid string) map[string]any {
		return map[string]any{"resourceRef": map[string]any{"apiGroup": projects, "kind": kind, "name": name, "uid": uid}}
	}
	every := func(kind string) map[string]any {
		return map[string]any{"resourceKind": map[string]any{"apiGroup": projects, "kind": kind}}
	}
	return map[string]attempt{
		"bind on an organization":        {kinds.PolicyBindings(), "new", bind("reader", on("Organization", "acme", acme))},
		"bind on a project":              {kinds.PolicyBindings(), "new", bind("reader", on("Project", "web", web))},
		"bind on the next of a name":     {kinds.PolicyBindings(), "new", bind("reader", on("Project", "web", "another"))},
		"bind on a kind":                 {kinds.PolicyBindings(), "new", bind("reader", every("Project"))},
		"bind what is not there yet":     {kinds.PolicyBindings(), "new", bind("absent", on("Project", "web", web))},
		"bind on what is not registered": {kinds.PolicyBindings(), "new", bind("reader", every("Pond"))},
		"join a subject to a binding": {kinds.PolicyBindings(), "on-acme", map[string]any{
			"roleRef": map[string]any{"name": "reader"}, "subjects": []any{subjectFromMessage("User", "other", "o"), subjectFromMessage("User", mallory, "m")},
			"resourceSelector": on("Organization", "acme", acme),
		}},
		"join a group": {kinds.GroupMemberships(), "new", map[string]any{
			"userRef": map[string]any{"name": mallory}, "groupRef": map[string]any{"name": "staff", "namespace": namespace},
		}},
		"inherit":                 {kinds.IAMRoles(), "mine", map[string]any{"launchStage": "Beta", "inheritedRoles": []any{map[string]any{"name": "reader"}}}},
		"inherit what is not yet": {kinds.IAMRoles(), "mine", map[string]any{"launchStage": "Beta", "inheritedRoles": []any{map[string]any{"name": "absent"}}}},
		"take a project over":     {kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "mine"}}},
		"join who have nothing": {kinds.GroupMemberships(), "new", map[string]any{
			"userRef": map[string]any{"name": mallory}, "groupRef": map[string]any{"name": "nobodies", "namespace": namespace},
		}},
		"make a project": {kinds.Projects(), "new", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}}},
	}
}

func TestWebhookRefusesGrantOfMissingRight(t *testing.T) {
	b := newGuardedBed(t)
	b.StartReflector()
	b.protect()
	acme := b.create(kinds.Organizations(), "acme", map[string]any{"type": "Standard"})
	mine := b.create(kinds.Organizations(), "mine", map[string]any{"type": "Standard"})
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	uid := b.create(kinds.IAMUsers(), mallory, map[string]any{"email": "mallory@example.com"})
	staff := b.create(kinds.IAMGroups(), "staff", nil)
	b.create(kinds.IAMGroups(), "nobodies", nil)
	b.create(kinds.IAMRoles(), "mine", map[string]any{"launchStage": "Beta"})
	group := subjectFromMessage("Group", "staff", staff)
	group["namespace"] = namespace
	b.bind("on-acme", "Organization", "acme", acme, group)
	b.bind("on-mine", "Organization", "mine", mine, subjectFromMessage("User", mallory, uid))
	b.awaitReady()
	testenv.Eventually(t, soon, func() error {
		if b.tries(kinds.PolicyBindings(), "new", attempts(acme, web)["bind on an organization"].spec) == "" {
			return fmt.Errorf("the guard is not in force")
		}
		return nil
	})
	b.mayTry(t, attempts(acme, web), "join who have nothing", "make a project")

	b.bind("mallory-acme", "Organization", "acme", acme, subjectFromMessage("User", mallory, uid))
	b.awaitReady()
	b.mayTry(t, attempts(acme, web), "join who have nothing", "make a project", "bind on an organization", "bind on a project",
		"join a subject to a binding", "join a group", "take a project over")

	b.create(kinds.PolicyBindings(), "mallory-all", map[string]any{
		"roleRef": map[string]any{"name": "reader"}, "subjects": []any{subjectFromMessage("User", mallory, uid)},
		"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": projects, "kind": "Project"}},
	})
	b.awaitReady()
	b.mayTry(t, attempts(acme, web), "join who have nothing", "make a project", "bind on an organization", "bind on a project",
		"join a subject to a binding", "join a group", "take a project over", "bind on a kind", "bind on the next of a name", "inherit")
}

// TestWebhookRefusesGrantByLostRole verifies that a user cannot give a lost role by the old state of a
// replica. A replica decides only if it has verified within two seconds that its state is complete.
func TestWebhookRefusesGrantByLostRole(t *testing.T) {
	b := newGuardedBed(t)
	reflector := b.StartReflector()
	b.protect()
	acme := b.create(kinds.Organizations(), "acme", map[string]any{"type": "Standard"})
	uid := b.create(kinds.IAMUsers(), mallory, map[string]any{"email": "mallory@example.com"})
	b.bind("mallory-acme", "Organization", "acme", acme, subjectFromMessage("User", mallory, uid))
	b.awaitReady()
	bind := func() error {
		a := attempts(acme, "")["bind on an organization"]
		return b.try(a.kind, a.name, a.spec)
	}
	testenv.Eventually(t, soon, bind)
	release := sync.OnceFunc(reflector.Pause())
	defer release()
	b.remove(kinds.PolicyBindings(), "mallory-acme")
	testenv.Eventually(t, soon, func() error {
		if bind() == nil {
			return errors.New("the guard still decides from the old state")
		}
		return nil
	})
	for range 20 {
		if bind() == nil {
			t.Fatal("the guard allows a binding while its state is stale")
		}
	}
	release()
	testenv.Eventually(t, soon, func() error {
		if err := bind(); err == nil || !strings.Contains(err.Error(), "has the verb escalate") {
			return fmt.Errorf("mallory can give a lost role: %w", err)
		}
		return nil
	})
}

// mayTry expects that all attempts are refused but those in pass.
func (b *bed) mayTry(t *testing.T, all map[string]attempt, pass ...string) {
	t.Helper()
	passes := map[string]bool{}
	for _, name := range pass {
		passes[name] = true
	}
	for name, a := range all {
		refused := b.tries(a.kind, a.name, a.spec)
		if (refused == "") != passes[name] {
			t.Errorf("%s: refused with %q, want it to pass: %v", name, refused, passes[name])
		}
		if refused != "" && !strings.Contains(refused, "has the verb escalate") {
			t.Errorf("%s: the refusal %q names no remedy", name, refused)
		}
	}
}
