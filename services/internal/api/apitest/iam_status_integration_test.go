//go:build integration

package apitest_test

import (
	"errors"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestIAMStatusUpdateDoesNotChangeSpecOrOwners(t *testing.T) {
	server := testenv.StartKube(t)
	stored := create(t, server, manifestNamed(t, "on-a-kind"))
	other := withField(t, stored, []string{"spec", "subjects"}, subjects("User", "mallory", "u"))
	other = withField(t, other, []string{"metadata", "ownerReferences"}, []any{map[string]any{
		"apiVersion": "resourcemanager.miloapis.com/v1alpha1", "kind": "Organization", "name": "evil", "uid": "evil",
	}})
	api := clientAsAuthor(t, server, stored, nil)
	testenv.Eventually(t, soon, func() error {
		now, err := api.UpdateStatus(t.Context(), other, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if now.GetGeneration() != stored.GetGeneration() || len(now.GetOwnerReferences()) > 0 {
			return errors.New("the status changed the object")
		}
		return nil
	})
}

// The records in a status decide access. So a user who may write statuses may neither set nor remove them.
func TestIAMPolicyRequiresRecordForStatusFields(t *testing.T) {
	server := testenv.StartKube(t)
	for name, test := range map[string]struct {
		object, resource, field string
		is, becomes             map[string]any
	}{
		"what a ProtectedResource has": {
			"compute.example.com-workload", "protectedresources", "registered",
			map[string]any{"group": "a.example", "kind": "Tree", "plural": "trees", "generation": int64(1)},
			map[string]any{"group": "a.example", "kind": "Wood", "plural": "trees", "generation": int64(1)},
		},
		"for whom a membership is": {
			"alice-staff", "groupmemberships", "user", map[string]any{"name": "alice", "uid": "1"}, map[string]any{"name": "alice", "uid": "2"},
		},
		"to whom a project belongs": {
			"web", "projects", "organization", map[string]any{"name": "acme", "uid": "1"}, map[string]any{"name": "acme", "uid": "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored := create(t, server, manifestNamed(t, test.object))
			path := []string{"status", test.field}
			service := clientAsAuthor(t, server, stored, []rbacv1.PolicyRule{right("record", test.resource, stored.GetName())})
			testenv.Eventually(t, soon, func() error {
				now, err := service.UpdateStatus(t.Context(), withField(t, stored, path, test.is), metav1.UpdateOptions{})
				if err == nil {
					stored = now
				}
				return err
			})
			api := clientAsAuthor(t, server, stored, []rbacv1.PolicyRule{right("record", test.resource, "another")})
			for what, value := range map[string]any{"another": test.becomes, "none": nil} {
				testenv.Eventually(t, soon, func() error {
					_, err := api.UpdateStatus(t.Context(), withField(t, stored, path, value), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
					if err = compareError(err, "needs the verb record"); err != nil {
						return fmt.Errorf("%s: %w", what, err)
					}
					return nil
				})
			}
			testenv.Eventually(t, soon, func() error {
				other := withField(t, stored, []string{"status", "conditions"}, []any{map[string]any{
					"type": "Odd", "status": "True", "reason": "Odd", "message": "odd", "lastTransitionTime": "2026-01-02T03:04:05Z",
				}})
				_, err := api.UpdateStatus(t.Context(), other, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			})
		})
	}
}

// A ProtectedResource without room in the model gives no access. So its condition Registered also needs the verb
// record.
func TestIAMPolicyRequiresRecordForRegisteredCondition(t *testing.T) {
	server := testenv.StartKube(t)
	stored := create(t, server, manifestNamed(t, "compute.example.com-workload"))
	path, service := []string{"status", "conditions"}, []rbacv1.PolicyRule{right("record", "protectedresources", stored.GetName())}
	says := func(rights []rbacv1.PolicyRule, want string, conditions ...any) {
		t.Helper()
		api := clientAsAuthor(t, server, stored, rights)
		testenv.Eventually(t, soon, func() error {
			now, err := api.UpdateStatus(t.Context(), withField(t, stored, path, conditions), metav1.UpdateOptions{})
			if err == nil && want == "" {
				stored = now
			}
			return compareError(err, want)
		})
	}
	is := func(typ, status, reason string) any {
		return map[string]any{"type": typ, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"}
	}
	const refused = "needs the verb record"
	room, none, observed := is("Registered", "True", "InForce"), is("Registered", "False", "LimitExceeded"), is("Observed", "True", "Followed")
	says(nil, refused, none)
	says(service, "", room)
	says(nil, refused, none)
	says(nil, refused, observed)
	says(nil, "", room, observed)
	says(service, "", none, observed)
	says(nil, refused, room, observed)
}
