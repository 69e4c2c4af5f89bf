package policytest

import (
	"fmt"
	"strings"
)

// LargePolicy returns a policy with the given numbers of types and of actions on each type. A role or the parent gives each
// action. Each binding is written out; [LargePolicyByUnion] uses a union instead.
func LargePolicy(types, actions int) []byte {
	var b strings.Builder
	writeDeclarations(&b, types, actions, func(i int) string { return typeName((i + 1) % types) })
	for i := range types {
		for j := range actions {
			writeBinding(&b, actionName(j), typeName(i))
		}
	}
	return []byte(b.String())
}

// LargePolicyByUnion returns a policy with as many bindings as [LargePolicy]. Each is written once, for a union of all types that is
// also the parent of each type.
func LargePolicyByUnion(types, actions int) []byte {
	var b strings.Builder
	writeDeclarations(&b, types, actions, func(int) string { return "everything" })
	for j := range actions {
		writeBinding(&b, actionName(j), "everything")
	}
	b.WriteString("unions:\n  - name: everything\n    resourceTypes:\n")
	for i := range types {
		fmt.Fprintf(&b, "      - name: %s\n", typeName(i))
	}
	return []byte(b.String())
}

func writeDeclarations(b *strings.Builder, types, actions int, parent func(int) string) {
	b.WriteString("resourceTypes:\n")
	for i := range types {
		fmt.Fprintf(b, "  - name: %s\n    idPrefix: pfx%05d\n    relationships:\n      - relation: parent\n        targetTypes:\n          - name: %s\n",
			typeName(i), i, parent(i))
	}
	b.WriteString("actions:\n")
	for j := range actions {
		fmt.Fprintf(b, "  - name: %s\n", actionName(j))
	}
	b.WriteString("actionBindings:\n")
}

func writeBinding(b *strings.Builder, action, on string) {
	fmt.Fprintf(b, "  - actionName: %[1]s\n    typeName: %[2]s\n    conditions:\n      - roleBinding: {}\n"+
		"      - relationshipAction:\n          relation: parent\n          actionName: %[1]s\n", action, on)
}

func typeName(i int) string { return fmt.Sprintf("type%d", i) }

// actionName returns a name without digits, which the language forbids.
func actionName(j int) string {
	letter := func(digit int) rune { return rune('a' + j/digit%26) }
	return "action_" + string([]rune{letter(1), letter(26), letter(26 * 26), letter(26 * 26 * 26)})
}
