// Package syntax contains the documents of the policy language in their written form, and reads them. A name from a
// file keeps its line and column, a name from an object keeps its field.
//
// The package checks only the form: YAML, keys, kinds of values. It reports parts that it cannot read and continues, so
// that one mistake hides no other. Keys match in any case. `resourceTypeNames` is another name for a union's
// `resourceTypes`. Targets and members are `name: x` or only x.
//
// A comment "Provided by NAME" at the beginning names the owner of a document. A document may also be the spec of a
// Kubernetes manifest of kind PolicyDocument. [ParseLimits] bounds time and memory for any input.
package syntax
