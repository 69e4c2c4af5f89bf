package tree

import (
	"slices"
	"strconv"
	"strings"
)

// IsTextScalar reports whether every version of YAML reads an unquoted scalar as a text, not as a number, a truth value or
// null.
func IsTextScalar(plain string) bool {
	lower := strings.ToLower(plain)
	if slices.Contains([]string{"", "~", "null", "y", "n", "yes", "no", "on", "off", "true", "false", ".inf", ".nan"}, lower) {
		return false
	}
	// Go has numbers that begin with a letter, such as inf; YAML has none.
	if first := lower[0]; first >= 'a' && first <= 'z' || first == '_' {
		return true
	}
	digits := strings.ReplaceAll(lower, "_", "")
	_, whole := strconv.ParseInt(digits, 0, 64)
	_, broken := strconv.ParseFloat(digits, 64)
	return whole != nil && broken != nil && !strings.HasSuffix(lower, ".inf")
}
