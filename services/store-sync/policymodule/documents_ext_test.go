package policymodule_test

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/module/moduletest"
	"github.com/entail-dev/entail/services/store-sync/policymodule"
	storestate "github.com/entail-dev/entail/services/store-sync/store"
	storeplan "github.com/entail-dev/entail/services/store-sync/store/plan"
)

func TestParsedDocumentsReturnsAcceptedPartsOnly(t *testing.T) {
	feed := moduletest.NewInformerFeeder(t)
	shared := module.NewStoreListers(feed.View, moduletest.Cluster)
	policies := policymodule.New(feed.View, &module.Applier{State: shared}, nil)
	store := feed.PutStore(moduletest.Cluster, "demo", "id")
	register := func(name, text string, edit ...func(*event.Change)) {
		d := iaplv1alpha1.PolicyDocument{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team"}}
		d.Spec.StoreRef.Name = "demo"
		if err := yaml.UnmarshalStrict([]byte(text), &d.Spec.Policy); err != nil {
			t.Fatal(err)
		}
		feed.PutObject(kinds.PolicyDocuments(), moduletest.Cluster, name, d, append(edit, func(c *event.Change) { c.Key.Namespace = "team" })...)
	}
	state := storestate.NewState(shared, policies)
	carry := func() {
		_, todo := storeplan.DecideModel(state.Snapshot(store, storeplan.Observed{}), policies.RegisteredDocuments(store), model.Limits{})
		for _, m := range todo.Apply {
			feed.PutObject(kinds.AuthorizationModels(), moduletest.Cluster, m.Name, m)
		}
	}
	// types returns the types that documents declare.
	types := func(accepted bool) map[string]string {
		documents, _, err := policies.ParsedDocuments(store, accepted)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, d := range documents {
			all[d.Source.File] = ""
			for _, declared := range d.ResourceTypes {
				all[d.Source.File] += declared.Name.Text
			}
		}
		return all
	}
	expect := func(accepted bool, want map[string]string) {
		t.Helper()
		if got := types(accepted); !maps.Equal(got, want) {
			t.Errorf("accepted %t: %v, want %v", accepted, got, want)
		}
	}
	const tenants, others = "policydocument/team/tenants", "policydocument/team/others"
	register("tenants", "resourceTypes: [{name: tenant, idPrefix: idntten}]")
	register("others", "resourceTypes: [{name: other, idPrefix: idnothe, relationships: [{relation: of, targetTypes: [{name: nobody}]}]}]")
	expect(false, map[string]string{tenants: "tenant", others: "other"})
	expect(true, map[string]string{tenants: "tenant", others: ""})
	carry()
	register("tenants", "resourceTypes: [{name: tenant, idPrefix: TENANT}]")
	expect(false, map[string]string{tenants: "tenant", others: "other"})
	expect(true, map[string]string{tenants: "tenant", others: ""})
	register("others", "resourceTypes: [{name: other, idPrefix: idnothe, relationships: [{relation: of, targetTypes: [{name: tenant}]}]}]")
	carry()
	register("tenants", "{}", moduletest.MarkDeleted)
	expect(false, map[string]string{others: "other"})
	expect(true, map[string]string{others: "other"})
}
