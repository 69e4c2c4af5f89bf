//go:build integration

package apitest_test

import (
	"errors"
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// These are parts of refusals.
const (
	notOther     = "needs the verb extend on stores.core.platform-mesh.io/other; ask the owner of the Store"
	notAll       = "needs the verb extend on all stores.core.platform-mesh.io"
	notOwner     = "declares the owner of the OpenFGA store, which needs the verb adopt on stores.core.platform-mesh.io/other"
	notGenerated = "annotations of generated AuthorizationModels need the verb record"
	notOwned     = "declares the owner of the OpenFGA store, which needs the verb adopt on stores.core.platform-mesh.io/owned"
	notAdopt     = "needs the verb adopt on stores.core.platform-mesh.io/other"
)

// createStores creates Stores as an administrator, and a tenant. It returns when all policies are in force.
func createStores(t *testing.T) (who dryRunUser, server *testenv.KubeServer) {
	t.Helper()
	server = testenv.StartKube(t)
	admin := newDryRunUser(t, server, "", "")
	b := kinds.APIBindings()
	for _, name := range []string{widgets, b.String()} {
		t.Cleanup(func() { server.DeleteCRD(t, name) })
	}
	for _, err := range []error{
		admin.create(kinds.CustomResourceDefinitions(), widgets, widget("own")),
		admin.create(kinds.CustomResourceDefinitions(), b.String(), definition(b.String(), b.Kind, b.Version, nil)),
		admin.create(kinds.Stores(), "other", store("IfEmpty")),
		admin.create(kinds.Stores(), "taken", store("Always")),
		admin.create(kinds.Stores(), "owned", declaring("store:owned#owner@cluster:1")),
		admin.create(kinds.Stores(), "held", declaring("store:held#owner@cluster:1")),
		admin.create(kinds.AuthorizationModels(), "mine", model("own", "")),
		admin.create(kinds.AuthorizationModels(), "theirs", model("other", "")),
		admin.create(kinds.PolicyDocuments(), "mine", reference("own", "")),
		admin.create(kinds.PolicyDocuments(), "theirs", reference("other", "")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, soon, func() error { return admin.apply(b, "bound", binding("theirs")) })
	who = grantTenantRights(t, server)
	testenv.Eventually(t, soon, func() error {
		if err := who.create(kinds.AuthorizationModels(), "tried", model("own", "")); err != nil {
			return err
		}
		for _, err := range []error{
			who.create(kinds.AuthorizationModels(), "tried", model("other", "")), who.patch(kinds.CustomResourceDefinitions(), widgets, label("other")),
			who.create(b, "tried", binding("theirs")), who.create(kinds.Stores(), "tried", store("Always")),
			who.create(kinds.Stores(), "tried", declaring("store:tried#owner@cluster:1")),
		} {
			if err == nil || !strings.Contains(err.Error(), "verb") {
				return errors.Join(errors.New("a policy is not in force"), err)
			}
		}
		return nil
	})
	return who, server
}

func TestStorePolicyRequiresExtendAndAdopt(t *testing.T) {
	who, server := createStores(t)
	models, documents, definitions, bindings, stores := kinds.AuthorizationModels(), kinds.PolicyDocuments(), kinds.CustomResourceDefinitions(), kinds.APIBindings(), kinds.Stores()
	for name, test := range map[string]struct {
		err error
		// want is part of the refusal. If it is empty, the request must be accepted.
		want string
	}{
		"a module":                                    {err: who.create(models, "tried", model("own", ""))},
		"a module of another's Store":                 {who.create(models, "tried", model("other", "")), notOther},
		"applied":                                     {who.apply(models, "tried", model("other", "")), notOther},
		"of a namesake in another cluster":            {who.create(models, "tried", model("own", "east")), notAll},
		"moved to another's Store":                    {who.patch(models, "mine", reference("other", "")), notOther},
		"moved to another cluster":                    {who.patch(models, "mine", reference("own", "east")), notAll},
		"edited where it is":                          {err: who.patch(models, "theirs", objectFields{"spec": objectFields{"model": "module n"}})},
		"fetched to one's own Store":                  {err: who.patch(models, "theirs", reference("own", ""))},
		"a document":                                  {err: who.create(documents, "tried", reference("own", ""))},
		"a document of another's Store":               {who.create(documents, "tried", reference("other", "")), notOther},
		"a document for another cluster":              {who.create(documents, "tried", reference("own", "east")), notAll},
		"a document that is moved":                    {who.patch(documents, "mine", reference("other", "")), notOther},
		"a document that is edited":                   {err: who.patch(documents, "theirs", objectFields{"spec": objectFields{"actions": []any{objectFields{"name": "read"}}}})},
		"a definition with a new label":               {who.patch(definitions, widgets, label("other")), notOther},
		"a definition that loses its label":           {err: who.patch(definitions, widgets, label(nil))},
		"a definition that keeps it":                  {err: who.patch(definitions, widgets, objectFields{"metadata": objectFields{"annotations": objectFields{"a": "b"}}})},
		"a definition made with the label":            {who.create(definitions, "gadgets.example.com", definition("gadgets.example.com", "Gadget", "v1", objectFields{corev1alpha1.StoreNameLabel: "other"})), notOther},
		"a definition without one":                    {err: who.create(definitions, "gadgets.example.com", definition("gadgets.example.com", "Gadget", "v1", nil))},
		"an APIBinding":                               {who.create(bindings, "tried", binding("theirs")), notAll},
		"an APIBinding to another export":             {who.patch(bindings, "bound", binding("others")), notAll},
		"an APIBinding that is edited":                {err: who.patch(bindings, "bound", objectFields{"metadata": objectFields{"labels": objectFields{"a": "b"}}})},
		"an APIBinding of the platform":               {err: who.create(bindings, "tried", binding("core.platform-mesh.io"))},
		"an APIBinding of kcp":                        {err: who.create(bindings, "tried", binding("tenancy.kcp.io"))},
		"a Store":                                     {err: who.create(stores, "tried", store("IfEmpty"))},
		"a Store that adopts":                         {err: who.create(stores, "own", store("Always"))},
		"a Store that adopts what it may not":         {who.patch(stores, "other", store("Always")), notAdopt},
		"a Store with a name to come that adopts":     {who.create(stores, "", objectFields{"metadata": objectFields{"generateName": "own"}, "spec": store("Always")["spec"]}), "verb adopt on stores.core.platform-mesh.io/own"},
		"a Store that was allowed to adopt, edited":   {err: who.patch(stores, "taken", objectFields{"spec": objectFields{"coreModule": "module c"}})},
		"a Store that says whose it is":               {err: who.create(stores, "own", declaring("store:own#owner@cluster:1"))},
		"another's Store made that says so":           {who.create(stores, "other-2", declaring("store:other-2#owner@cluster:1")), notOwner + "-2"},
		"another's Store that says so":                {who.patch(stores, "other", declaring("user:1#a@doc:1", "store:other#owner@cluster:1")), notOwner},
		"applied so":                                  {who.apply(stores, "other", declaring("store:other#owner@cluster:1")), notOwner},
		"under a condition":                           {who.patch(stores, "other", conditional("store:other#owner@cluster:1")), notOwner},
		"a Store that names another besides":          {who.patch(stores, "owned", declaring("store:owned#owner@cluster:1", "store:owned#owner@cluster:2")), "declares the owner of the OpenFGA store"},
		"a Store that says so already, edited":        {err: who.patch(stores, "owned", objectFields{"spec": objectFields{"coreModule": "module c"}})},
		"a Store that says so already, with more":     {err: who.patch(stores, "owned", declaring("doc:1#owner@user:1", "store:owned#owner@cluster:1"))},
		"a Store that says so no more":                {who.patch(stores, "owned", declaring("doc:1#owner@user:1")), notOwned},
		"a Store that declares no tuples any more":    {who.patch(stores, "owned", objectFields{"spec": objectFields{"tuples": []any{}}}), notOwned},
		"a Store that says so under a condition now":  {who.patch(stores, "owned", conditional("store:owned#owner@cluster:1")), notOwned},
		"a Store that says so, deleted":               {who.delete(stores, "owned"), notOwned},
		"a Store that says nothing, deleted":          {err: who.delete(stores, "other")},
		"one that the user may adopt, without":        {err: who.patch(stores, "held", declaring("doc:1#owner@user:1"))},
		"one that the user may adopt, deleted":        {err: who.delete(stores, "held")},
		"a Store that adopts no more":                 {who.patch(stores, "taken", store("IfEmpty")), "verb adopt on stores.core.platform-mesh.io/taken"},
		"a Store with other owners":                   {err: who.patch(stores, "other", declaring("store:1#owner@cluster:1", "doc:other#owner@user:1"))},
		"a Store whose adoption is none that we know": {who.create(stores, "tried", store("Never")), `"IfEmpty", "Always"`},
		"a module that looks generated from an API":   {who.create(models, "tried", generated(corev1alpha1.ResourceAnnotation)), notGenerated},
		"a module that becomes one of a document":     {who.patch(models, "mine", generated(corev1alpha1.DocumentAnnotation)), notGenerated},
		"a module with a text of a document":          {who.patch(models, "mine", generated(corev1alpha1.PolicyAnnotation)), notGenerated},
		"a module with an annotation of its owner":    {err: who.patch(models, "mine", generated("example.com/resource"))},
	} {
		t.Run(name, func(t *testing.T) { expectError(t, test.err, test.want) })
	}
	t.Run("a label put on by the status", func(t *testing.T) {
		got, err := who.patched(definitions, widgets, label("other"), "status")
		if err == nil && got.GetLabels()[corev1alpha1.StoreNameLabel] == "other" {
			t.Error("accepted")
		}
	})
	t.Run("who is bound to the role that is shipped", func(t *testing.T) {
		extender := newDryRunUser(t, server, "extender", "entail-store-extender")
		testenv.Eventually(t, soon, func() error { return extender.create(models, "tried", model("other", "east")) })
		expectError(t, extender.create(documents, "tried", reference("other", "")), "")
		expectError(t, extender.patch(models, "mine", reference("other", "")), "")
	})
}
