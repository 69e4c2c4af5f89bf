package tree

import (
	"slices"
	"strconv"
	"strings"
)

// IsText reports whether every version of YAML reads a scalar without quotes as a text, not as a
// number, a truth value or nothing.
func IsText(plain string) bool {
	lower := strings.ToLower(plain)
	if slices.Contains([]string{"", "~", "null", "y", "n", "yes", "no", "on", "off", "true", "false", ".inf", ".nan"}, lower) {
		return false
	}
	// What Go has for a number and YAML has not begins with a letter.
	if first := lower[0]; first >= 'a' && first <= 'z' || first == '_' {
		return true
	}
	digits := strings.ReplaceAll(lower, "_", "")
	_, whole := strconv.ParseInt(digits, 0, 64)
	_, broken := strconv.ParseFloat(digits, 64)
	return whole != nil && broken != nil && !strings.HasSuffix(lower, ".inf")
}
