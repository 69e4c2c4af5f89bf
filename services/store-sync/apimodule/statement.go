package apimodule

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

// These functions return statements with the fields from which modules are made, see [confirm.NewStatement].

func definitionStatement(o informer.Object[plan.Definition]) confirm.Statement {
	return confirm.NewStatement(o, func(d *plan.Definition) (declared, recorded any) {
		return []any{d.Labels[corev1alpha1.StoreNameLabel], d.Spec.Spec}, nil
	})
}

func bindingStatement(o informer.Object[plan.Binding]) confirm.Statement {
	return confirm.NewStatement(o, func(b *plan.Binding) (declared, recorded any) {
		return []any{b.Spec, b.Status, b.DeletionTimestamp}, nil
	})
}

func exportStatement(o informer.Object[plan.Export]) confirm.Statement {
	return confirm.NewStatement(o, func(e *plan.Export) (declared, recorded any) { return e.Schemas(), nil })
}

func schemaStatement(o informer.Object[plan.Schema]) confirm.Statement {
	return confirm.NewStatement(o, func(s *plan.Schema) (declared, recorded any) { return s.Spec, nil })
}

func accountStatement(o informer.Object[corev1alpha1.AccountInfo]) confirm.Statement {
	return confirm.NewStatement(o, func(i *corev1alpha1.AccountInfo) (declared, recorded any) { return i.Spec.Organization, nil })
}
