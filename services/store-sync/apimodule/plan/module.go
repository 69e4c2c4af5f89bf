package plan

import (
	"cmp"
	"errors"
	"strings"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

var errNameless = errors.New("the resource lacks a plural or a singular name")

// ModuleTemplate selects the form of modules.
type ModuleTemplate struct {
	// AccountType is the parent type of objects without a namespace.
	AccountType string
	// Privileged lets only owners change, bind and escalate objects. It is for resources that grant access.
	Privileged bool
	// Discovered marks resources of the API server itself.
	Discovered bool
}

// namespaceType is the parent type of objects in a namespace: the type of the resource namespaces.
const namespaceType = "core_namespace"

// ValidateTypeName returns an error if a type of the model cannot have this name.
func ValidateTypeName(name string) error { return checkName("the type", name, maxType) }

// RenderModule returns the DSL of the module for one resource.
func (t ModuleTemplate) RenderModule(r APIResource) (string, error) {
	if r.Plural == "" || r.Singular == "" {
		return "", errNameless
	}
	token, err := GroupToken(r.Group, r.Plural)
	if err != nil {
		return "", err
	}
	parent, change, module := cmp.Or(t.AccountType, corev1alpha1.AccountType), "member", r.Plural
	if r.Namespaced {
		parent = namespaceType
	}
	if t.Privileged {
		change = "owner"
	}
	if t.Privileged || t.Discovered {
		module = "internal_core_types_" + r.Plural
	}
	module = module[:min(len(module), maxName)] // No reference uses a module's name, so it may be cut.
	for _, err := range []error{
		checkName("the module", module, maxName),
		checkName("the type", token+"_"+r.Singular, maxType),
		checkName("the relation", "create_"+token+"_"+r.Plural, maxName),
	} {
		if err != nil {
			return "", err
		}
	}
	dsl := ordinary
	if t.Privileged {
		dsl += privileged
	}
	return strings.NewReplacer(
		"{module}", module, "{parent}", parent, "{type}", token+"_"+r.Singular, "{name}", token+"_"+r.Plural, "{change}", change,
	).Replace(dsl), nil
}

const ordinary = `module {module}

extend type {parent}
  relations
    define create_{name}: owner
    define list_{name}: member
    define watch_{name}: member

type {type}
  relations
    define parent: [{parent}]
    define member: [role#assignee] or owner or member from parent
    define owner: [role#assignee] or owner from parent
    define get: member
    define watch: member
    define update: {change}
    define delete: {change}
    define patch: {change}
    define manage_iam_roles: owner
    define get_iam_roles: member
    define get_iam_users: member
`

const privileged = `    define bind: owner
    define escalate: owner
`
