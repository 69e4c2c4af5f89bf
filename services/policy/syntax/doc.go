// Package syntax has the documents of the policy language as they are written, and reads them:
// from files, where each name keeps its line and column, or from objects, where it keeps its field.
//
// It judges the form only: YAML, keys, kinds of value. What it cannot read it reports and
// goes on, so that one mistake hides no other. Keys match in any case; `resourceTypeNames`
// is another name for a union's `resourceTypes`; targets and members are `name: x` or just x.
// A comment "Provided by NAME" at its beginning names the owner of a document. A document may also
// be the spec of a manifest of the kind PolicyDocument, as Kubernetes has it.
// Whatever the input, time and memory are bounded by [Limits].
package syntax
