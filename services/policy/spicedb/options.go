package spicedb

import (
	"cmp"
	"fmt"
	"strings"
)

// Options are the choices of who runs SpiceDB. Zero fields are defaults.
type Options struct {
	// Prefix of every definition, "infratographer" by default; several parts are joined by slashes.
	Prefix string
	// Unprefixed leaves the prefix out.
	Unprefixed bool
	// MaxBytes of the schema, 4 MiB by default as in SpiceDB's API; negative is without limit.
	MaxBytes int
}

// defaultMaxBytes is what WriteSchema takes.
const defaultMaxBytes = 4 << 20

// prefix returns what stands before the names of types.
func (o Options) prefix() string {
	if o.Unprefixed {
		return ""
	}
	return cmp.Or(o.Prefix, "infratographer") + "/"
}

// Validate returns an error that says which option cannot be.
func (o Options) Validate() error {
	if o.Unprefixed {
		return nil
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(o.prefix(), "/"), "/") {
		if !isName(part) || len(part) > maxPrefixPart || isKeyword(part) {
			return fmt.Errorf("prefix %.64q: use 3 to 63 lower-case letters, digits and underscores, first a letter, last no underscore", o.Prefix)
		}
	}
	return nil
}
