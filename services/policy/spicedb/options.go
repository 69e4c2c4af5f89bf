package spicedb

import (
	"cmp"
	"fmt"
	"strings"
)

// Options holds settings for an installation of SpiceDB. Zero fields mean defaults.
type Options struct {
	// Prefix is the prefix of every definition. The default is "infratographer". Slashes separate several parts.
	Prefix string
	// Unprefixed leaves out the prefix.
	Unprefixed bool
	// MaxBytes bounds the schema. The default is 4 MiB, as in SpiceDB's API; a negative value means no limit.
	MaxBytes int
}

// defaultMaxBytes is the limit of WriteSchema.
const defaultMaxBytes = 4 << 20

// typePrefix returns the prefix of the names of types, with its slash.
func (o Options) typePrefix() string {
	if o.Unprefixed {
		return ""
	}
	return cmp.Or(o.Prefix, "infratographer") + "/"
}

// Validate returns an error that names the invalid option.
func (o Options) Validate() error {
	if o.Unprefixed {
		return nil
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(o.typePrefix(), "/"), "/") {
		if !isSpiceDBName(part) || len(part) > maxPrefixPart || isKeyword(part) {
			return fmt.Errorf("prefix %.64q: use 3 to 63 lower-case letters, digits and underscores, first a letter, last no underscore", o.Prefix)
		}
	}
	return nil
}
