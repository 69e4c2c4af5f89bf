package policy

import "fmt"

// MaxDiagnostics is how many findings one step reports: beyond it nobody reads them.
const MaxDiagnostics = 10_000

// Collector collects diagnostics. The zero value is ready for use.
type Collector struct {
	found Diagnostics
	full  bool
}

// Add reports a finding; its severity is that of the code. The result may be used until the next call.
func (c *Collector) Add(place Place, code Code, message, hint string) *Diagnostic {
	if len(c.found) == MaxDiagnostics {
		c.full = true
		return &Diagnostic{}
	}
	c.found = append(c.found, Diagnostic{Place: place, Code: code, Severity: code.Severity(), Message: message, Hint: hint})
	return &c.found[len(c.found)-1]
}

// Also names another place that the finding speaks of.
func (d *Diagnostic) Also(place Place, message string) *Diagnostic {
	d.Related = append(d.Related, Related{Place: place, Message: message})
	return d
}

// HasErrors reports whether one of the findings forbids the policy.
func (c *Collector) HasErrors() bool { return c.found.HasErrors() }

// Diagnostics returns what was found.
func (c *Collector) Diagnostics() Diagnostics {
	found := Diagnostics{}.Join(c.found)
	if c.full {
		found = append(found, Diagnostic{
			Code: CodeLimit, Severity: Error,
			Message: fmt.Sprintf("there are more than %d findings", MaxDiagnostics),
			Hint:    "mend those that are listed, then look again",
		})
	}
	return found
}
