//go:build integration

package webhook_test

import (
	"fmt"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
)

// callful bounds the tuples of one Write.
const callful = 100

// bare writes the tuples of [bed.publish] to OpenFGA, and returns a function that checks the next puzzle there.
func (b *bed) bare(all []puzzle) func() error {
	b.T.Helper()
	x, client := authz.New(nil), b.OpenFGA.Client(b.T)
	protected := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "project"}}
	protected.Spec.ServiceRef.Name, protected.Spec.Kind, protected.Spec.Plural, protected.Spec.Permissions = projects, "Project", "projects", []string{"get", "list"}
	x.SetProtectedResource("project", protected)
	store, err := client.CreateStore(b.T.Context(), "bare")
	if err != nil {
		b.T.Fatal(err)
	}
	model := &openfgav1.AuthorizationModel{SchemaVersion: typesystem.SchemaVersion1_2, TypeDefinitions: x.Registry().TypeDefinitions()}
	id, err := client.WriteModel(b.T.Context(), store, model)
	if err != nil {
		b.T.Fatal(err)
	}
	b.fill(client, store, id)
	checks := map[puzzle]*openfgav1.CheckRequest{}
	for _, p := range all {
		x.SetTarget(projects+"/Project", "", p.project, &iam.BindingTarget{UID: "u"})
		c, ok := x.ToOpenFGACheck(authz.Query{
			Subject: authz.Subject{User: p.user}, Permission: projects + "/projects.get", Type: projects + "/Project", Name: p.project,
		})
		if !ok {
			b.T.Fatalf("no check for %+v", p)
		}
		links := &openfgav1.ContextualTupleKeys{}
		for _, t := range c.Context {
			links.TupleKeys = append(links.TupleKeys, &openfgav1.TupleKey{User: t.User, Relation: t.Relation, Object: t.Object})
		}
		checks[p] = &openfgav1.CheckRequest{
			StoreId: store, AuthorizationModelId: id, ContextualTuples: links,
			TupleKey: &openfgav1.CheckRequestTupleKey{User: c.User, Relation: c.Relation, Object: c.Object},
		}
	}
	return each(all, func(p puzzle) error {
		answer, err := client.Check(b.T.Context(), checks[p])
		if err == nil && answer.GetAllowed() != p.allowed {
			err = fmt.Errorf("%+v is answered %v", p, answer.GetAllowed())
		}
		return err
	})
}

// fill writes the tuples of all bindings.
func (b *bed) fill(client *fga.Client, store, model string) {
	b.T.Helper()
	role := &iamv1alpha1.Role{ObjectMeta: metav1.ObjectMeta{UID: types.UID("0a1b2c3d-0000-0000-0000-reader")}}
	var call []*openfgav1.TupleKey
	flush := func() {
		if err := client.Write(b.T.Context(), store, model, call, nil); err != nil {
			b.T.Fatal(err)
		}
		call = nil
	}
	put := func(user, relation, object string) {
		if call = append(call, &openfgav1.TupleKey{User: user, Relation: relation, Object: object}); len(call) == callful {
			flush()
		}
	}
	put(iam.UserType+":*", iam.RelationOf(projects+"/projects.get"), iam.RoleObject(role))
	for i := range bindings {
		target := iam.OpenFGAObject(projects+"/Project", "", fmt.Sprint("project-", i%most))
		grant := iam.GrantObject(role, target)
		if i < most {
			put(iam.RoleObject(role), "r", grant)
			put(grant, "b", target)
		}
		put(iam.UserSubject(holderOf(i)), "u", grant)
	}
	if len(call) > 0 {
		flush()
	}
}
