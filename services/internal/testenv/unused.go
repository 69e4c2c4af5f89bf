package testenv

import (
	"errors"
	"flag"
	"fmt"
	"slices"
)

// rightsUsage holds the rights that the tests of a package have shown to be used.
type rightsUsage struct {
	service string
	// used lists the rights that the service reported as missing.
	used []Right
}

// isWholePackage reports whether all tests of the package run.
func isWholePackage() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

// checkRightsUsed returns an error that names the rights that no test of the package used.
func (c *sharedKube) checkRightsUsed() error {
	if c.rights.service == "" {
		return nil // The package has no rights suite.
	}
	left, err := auditLogDir(c.root).unusedRights(c.rights.service)
	var problems []error
	for _, right := range left {
		if !right.isAdmissionVerb() || !slices.Contains(c.rights.used, right) {
			problems = append(problems, fmt.Errorf("%s: no test used the right to %s; add a test that needs it, or remove it from services/internal/rbac",
				c.rights.service, right))
		}
	}
	return errors.Join(append(problems, err)...)
}
