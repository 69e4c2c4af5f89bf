package policy

import "fmt"

// MaxDiagnostics bounds the findings that one step reports. A user does not read more.
const MaxDiagnostics = 10_000

// DiagnosticCollector collects diagnostics. The zero value is ready for use.
type DiagnosticCollector struct {
	found Diagnostics
	// left counts the findings that were left out, by severity. An error replaces a warning when the list is full.
	left map[Severity]int
	// errors counts the findings at the beginning of the list that are known to be errors.
	errors int
}

// Add adds a finding with the severity of its code. The result is valid until the next call of Add.
func (c *DiagnosticCollector) Add(place Place, code Code, message, hint string) *Diagnostic {
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

// AddRelated adds another place to the finding.
func (d *Diagnostic) AddRelated(place Place, message string) *Diagnostic {
	d.Related = append(d.Related, RelatedPlace{Place: place, Message: message})
	return d
}

// HasErrors reports whether a finding is an error.
func (c *DiagnosticCollector) HasErrors() bool { return c.found.HasErrors() }

// Diagnostics returns the findings, sorted. If findings were left out, the last one holds their number.
func (c *DiagnosticCollector) Diagnostics() Diagnostics {
	found := Diagnostics{}.Merge(c.found)
	code := CodeMoreWarnings
	if c.left[Error] > 0 {
		code = CodeLimit
	}
	if left := c.left[Error] + c.left[Warning]; left > 0 {
		found = append(found, Diagnostic{
			Code: code, Severity: code.Severity(), left: left,
			Message: fmt.Sprintf("there are %d findings more than the %d that are listed", left, MaxDiagnostics),
			Hint:    "correct those that are listed, then check again",
		})
	}
	return found
}
