// Package load reads documents of the policy language: from the bytes of files, where each
// name keeps its line and column, or from objects, where it keeps its field.
//
// It judges the form only: YAML, keys, kinds of value. What it cannot read it reports and
// goes on, so that one mistake hides no other. Keys match in any case; `resourceTypeNames`
// is another name for a union's `resourceTypes`; targets and members are `name: x` or just x.
// Whatever the input, time and memory are bounded by [Limits].
package load
