package policy

import "fmt"

// MaxDiagnostics is how many findings one step reports: beyond it nobody reads them.
const MaxDiagnostics = 10_000

// Collector collects diagnostics. The zero value is ready for use.
type Collector struct {
	found Diagnostics
	// left is how many findings of a severity were left out. No warning takes the place of an error.
	left map[Severity]int
	// errors is how many findings, from the first on, are known to be errors.
	errors int
}

// Add reports a finding; its severity is that of the code. The result may be used until the next call.
func (c *Collector) Add(place Place, code Code, message, hint string) *Diagnostic {
	d := Diagnostic{Place: place, Code: code, Severity: code.Severity(), Message: message, Hint: hint}
	if len(c.found) < MaxDiagnostics {
		c.found = append(c.found, d)
		return &c.found[len(c.found)-1]
	}
	if c.left == nil {
		c.left = map[Severity]int{}
	}
	for d.Severity == Error && c.errors < MaxDiagnostics {
		c.errors++
		if at := &c.found[c.errors-1]; at.Severity == Warning {
			c.left[Warning]++
			*at = d
			return at
		}
	}
	c.left[d.Severity]++
	return &Diagnostic{}
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
	code := CodeMoreWarnings
	if c.left[Error] > 0 {
		code = CodeLimit
	}
	if left := c.left[Error] + c.left[Warning]; left > 0 {
		found = append(found, Diagnostic{
			Code: code, Severity: code.Severity(), left: left,
			Message: fmt.Sprintf("there are %d findings more than the %d that are listed", left, MaxDiagnostics),
			Hint:    "mend those that are listed, then look again",
		})
	}
	return found
}
