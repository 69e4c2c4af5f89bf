package policy

import "strings"

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	digits = "0123456789"
)

// IsTypeName reports whether s can name a type or a union: ^[a-z][a-z0-9_]*$.
func IsTypeName(s string) bool { return startsWithLower(s) && consistsOf(s, lower+digits+"_") }

// IsRelationName reports whether s can name a relation: ^[a-z][a-z_]*$.
func IsRelationName(s string) bool { return startsWithLower(s) && consistsOf(s, lower+"_") }

// IsActionName reports whether s can name an action: ^[a-z][a-z_]+$.
func IsActionName(s string) bool { return len(s) > 1 && IsRelationName(s) }

// IsIDPrefix reports whether s can be the prefix of IDs: ^[a-z0-9]{3,}$.
func IsIDPrefix(s string) bool { return len(s) >= 3 && consistsOf(s, lower+digits) }

func startsWithLower(s string) bool { return s != "" && s[0] >= 'a' && s[0] <= 'z' }

func consistsOf(s, alphabet string) bool {
	for i := range len(s) {
		if strings.IndexByte(alphabet, s[i]) < 0 {
			return false
		}
	}
	return true
}
