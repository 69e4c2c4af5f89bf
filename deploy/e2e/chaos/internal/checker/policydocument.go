package checker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// checkPolicyDocuments requires that the model of each Store has exactly the documents of that Store. Each document
// declares one type of its own name with one action, which becomes a relation of that type.
func checkPolicyDocuments(_ context.Context, w *CheckedSystem) error {
	var errs []error
	wanted := map[string]bool{}
	for _, d := range w.Snapshot.ObjectsOfKind(workload.PolicyDocumentResource()) {
		store := textField(d, "spec", "storeRef", "name")
		if !w.Snapshot.isStoreLive(store) {
			continue
		}
		wanted[store+"/"+d.GetName()] = true
		if err := errors.Join(requireCondition(d, "Valid", true), requireCondition(d, "Ready", true), checkDocumentModule(w.Snapshot, d, store)); err != nil {
			errs = append(errs, fmt.Errorf("policydocument %s: %w", d.GetName(), err))
		}
	}
	for _, m := range w.Snapshot.UndeletedOfKind(workload.AuthorizationModelResource()) {
		store := textField(m, "spec", "storeRef", "name")
		name, ours := strings.CutPrefix(m.GetName(), "policydocument.default.")
		name, _, _ = strings.Cut(name, ".")
		if ours && w.Snapshot.isStoreLive(store) && !wanted[store+"/"+name] {
			errs = append(errs, fmt.Errorf("authorizationmodel %s is of no document", m.GetName()))
		}
	}
	return errors.Join(errs...)
}

// checkDocumentModule requires exactly one module for a document, with its type and action.
func checkDocumentModule(s *ObjectSnapshot, document unstructured.Unstructured, store string) error {
	actions, _, _ := unstructured.NestedSlice(document.Object, "spec", "actions")
	var action string
	for _, a := range actions {
		action = fmt.Sprint(a.(map[string]any)["name"]) //nolint:forcetypeassert // The CRD has it so.
	}
	var found []unstructured.Unstructured
	for _, m := range s.UndeletedOfKind(workload.AuthorizationModelResource()) {
		if strings.HasPrefix(m.GetName(), "policydocument.default."+document.GetName()+".") && textField(m, "spec", "storeRef", "name") == store {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("there are %d AuthorizationModels of it in %s", len(found), store)
	}
	text := textField(found[0], "spec", "model")
	for _, part := range []string{"type " + document.GetName() + "\n", "define " + action + ":"} {
		if !strings.Contains(text, part) {
			return fmt.Errorf("its module lacks %q: %s", part, text)
		}
	}
	return nil
}

// isStoreLive reports whether a Store exists and is not being deleted.
func (s *ObjectSnapshot) isStoreLive(name string) bool {
	for _, store := range s.UndeletedOfKind(workload.StoreResource()) {
		if store.GetName() == name {
			return true
		}
	}
	return false
}
