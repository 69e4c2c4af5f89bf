package options

import "strings"

// MergeArguments appends the given flags to the defaults and drops each
// default that is given too: a flag that takes a list would hold both values.
func MergeArguments(defaults, given []string) []string {
	names := make(map[string]bool, len(given))
	for _, argument := range given {
		names[flagName(argument)] = true
	}
	merged := make([]string, 0, len(defaults)+len(given))
	for _, argument := range defaults {
		if !names[flagName(argument)] {
			merged = append(merged, argument)
		}
	}
	return append(merged, given...)
}

func flagName(argument string) string {
	name, _, _ := strings.Cut(argument, "=")
	return name
}
