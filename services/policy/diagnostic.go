package policy

import (
	"cmp"
	"slices"
	"strings"
)

// Severity says whether a finding forbids the policy.
type Severity string

// Severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Severity of findings with the code: the first letter tells.
func (c Code) Severity() Severity {
	if strings.HasPrefix(string(c), "W-") {
		return Warning
	}
	return Error
}

// Diagnostic is one finding: where it is, what is wrong, what to do.
type Diagnostic struct {
	Place
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint"`
	// Related are other places that have to do with it, such as the first of two that bear one name.
	Related []Related `json:"related,omitempty"`

	// left is how many others it stands for.
	left int
}

// Related is another place that a diagnostic speaks of.
type Related struct {
	Place
	Message string `json:"message"`
}

// String is "file:line:column: CODE message".
func (d Diagnostic) String() string {
	if place := d.Place.String(); place != "" {
		return place + ": " + string(d.Code) + " " + d.Message
	}
	return string(d.Code) + " " + d.Message
}

// Diagnostics are findings, sorted by place and code.
type Diagnostics []Diagnostic

// HasErrors reports whether one of them forbids the policy.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Total is how many findings there are, with those that are not listed.
func (ds Diagnostics) Total() int {
	total := len(ds)
	for _, d := range ds {
		if d.left > 0 {
			total += d.left - 1
		}
	}
	return total
}

// Join returns the findings of both, sorted, each once.
func (ds Diagnostics) Join(others Diagnostics) Diagnostics {
	all := slices.Concat(ds, others)
	slices.SortStableFunc(all, Diagnostic.compare)
	return slices.CompactFunc(all, func(a, b Diagnostic) bool { return a.compare(b) == 0 })
}

func (d Diagnostic) compare(o Diagnostic) int {
	return cmp.Or(
		d.Place.compare(o.Place), cmp.Compare(d.Code, o.Code), cmp.Compare(d.Message, o.Message),
		slices.CompareFunc(d.Related, o.Related, func(a, b Related) int { return a.Place.compare(b.Place) }),
	)
}
