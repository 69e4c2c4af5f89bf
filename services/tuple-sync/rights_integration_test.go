//go:build integration

package tuplesync_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
)

// revokedRightEnv is a tuple-sync that lacks one right after the other.
type revokedRightEnv struct {
	*envWithRoles

	suite testenv.RightsSuite
}

func TestTupleSyncReportsEachMissingRight(t *testing.T) {
	r := &revokedRightEnv{envWithRoles: &envWithRoles{iamTestEnv: newIAMTestEnv(t)}}
	r.everyKind()
	r.StartReflector()
	r.suite = testenv.RightsSuite{
		Env: r.Env, Service: topology.TupleSync, Log: &testenv.LogBuffer{}, CreateObjects: r.fill, Triggers: r.uses(),
		Start:     func() *testenv.RunningService { return r.serve(guarded(r.T, r.suite.Log)) },
		AwaitIdle: func() { r.AwaitCaughtUp(topology.TupleSync) },
		CallWithoutRights: func(ctx context.Context, caller *http.Client, url string) error {
			_, err := tuplev1connect.NewTupleServiceClient(caller, url).ListTuples(ctx, &tuplev1.ListTuplesRequest{Store: "demo"})
			return err
		},
	}
	r.suite.Run(t)
}

// guarded makes the service ask the API server who calls it, and write its log here.
func guarded(t testing.TB, log *testenv.LogBuffer) func(*tuplesync.Config) {
	t.Helper()
	return func(c *tuplesync.Config) {
		c.RPC.Auth = rpc.AuthKubernetes
		c.Embed.Log = log.Logger(t, slog.LevelInfo)
	}
}

// everyKind makes what a bed of IAM lacks of the kinds that are followed.
func (r *revokedRightEnv) everyKind() {
	r.T.Helper()
	r.store("demo", "document:1#viewer@user:1")
	r.synced("demo", docs)
	r.module("docs", "demo", "document:2#viewer@user:1")
	r.merged("docs")
	r.apply(kinds.IAMServiceAccounts(), "robot", nil)
	r.Kube.ServeKinds(r.T, kinds.AccountInfos())
	r.Kube.Apply(r.T, kinds.AccountInfos(), "account", map[string]any{})
}

// uses is the table of what needs each right.
func (r *revokedRightEnv) uses() map[string]testenv.RightTrigger {
	var declared []string
	store := testenv.RightTrigger{
		RequireRight: func(c testenv.RightCase) {
			r.store(c.Name, "document:1#viewer@user:1")
			r.synced(c.Name, docs)
		},
		AwaitDone: func(c testenv.RightCase) { r.await(stores, c.Name, "Synced") },
	}
	model := testenv.RightTrigger{
		RequireRight: func(c testenv.RightCase) {
			r.module(c.Name, "demo", "document:"+c.Name+"#viewer@user:1")
			r.merged(c.Name)
		},
		AwaitDone: func(c testenv.RightCase) { r.await(models, c.Name, "Synced") },
	}
	judged := testenv.RightTrigger{RequireRight: r.another, AwaitDone: r.judged}
	uses := map[string]testenv.RightTrigger{
		"patch stores": store, "patch stores/status": store, "record stores": store,
		"patch authorizationmodels": model, "patch authorizationmodels/status": model, "record authorizationmodels": model,
		"record *": judged,
		"patch *": {
			RequireRight: func(c testenv.RightCase) {
				r.another(c)
				r.judged(c)
				r.SetFinalizers(c.Kind, r.namespaceOf(c.Kind), c.Name, former(c.Kind))
			},
			AwaitDone: func(c testenv.RightCase) { r.AwaitNoFinalizers(c.Kind, r.namespaceOf(c.Kind), c.Name) },
		},
		"create events": { // They name a tuple that no object declares.
			RequireRight: func(testenv.RightCase) {
				declared = r.holds(r.id)
				r.write(r.id, []string{iam.GrantType + ":" + string(r.web.UID) + "/door#u@" + iam.UserSubject("eve")}, nil)
			},
			AwaitDone: func(testenv.RightCase) { r.awaitTuples(r.id, declared...) },
		},
	}
	for _, kind := range kinds.IAMKinds() {
		uses["patch "+kind.Resource+"/status"] = judged
	}
	return uses
}

// former returns the finalizer by which other software once held objects of a kind.
func former(kind kinds.Kind) string {
	return map[kinds.Kind]string{
		kinds.IAMRoles(): iamv1alpha1.RoleFinalizer, kinds.PolicyBindings(): iamv1alpha1.PolicyBindingFinalizer,
		kinds.GroupMemberships(): iamv1alpha1.GroupMembershipFinalizer, kinds.IAMUsers(): iamv1alpha1.SystemGroupFinalizer,
		kinds.IAMServiceAccounts(): iamv1alpha1.SystemGroupFinalizer, kinds.Projects(): resourcemanagerv1alpha1.HierarchyFinalizer,
	}[kind]
}

// another makes one more object of a kind of IAM.
func (r *revokedRightEnv) another(c testenv.RightCase) {
	r.T.Helper()
	switch c.Kind {
	case kinds.IAMRoles():
		r.role(c.Name, nil, getProject)
	case kinds.PolicyBindings():
		r.bind(c.Name, "viewer", on(projectType, r.web), user(r.alice))
	case kinds.GroupMemberships():
		r.join(c.Name, "bob", r.staff)
	case kinds.IAMUsers():
		r.user(c.Name)
	case kinds.Organizations():
		r.org(c.Name)
	case kinds.Projects():
		r.project(c.Name, "acme")
	case kinds.ProtectedResources():
		r.register(c.Name, "a.example/P"+c.Name[1:], c.Name+"s")
		r.remodel()
	default:
		r.apply(c.Kind, c.Name, nil)
	}
}

// judged waits until the status of the object that [revokedRightEnv.another] made has conditions.
func (r *revokedRightEnv) judged(c testenv.RightCase) {
	r.T.Helper()
	testenv.Eventually(r.T, soon, func() error {
		u, err := r.ResourceClient(c.Kind).Namespace(r.namespaceOf(c.Kind)).Get(r.T.Context(), c.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var o struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
			return err
		}
		if len(o.Status.Conditions) == 0 {
			return fmt.Errorf("%s %s has no condition: %v", c.Kind.Kind, c.Name, u.Object)
		}
		return nil
	})
}
