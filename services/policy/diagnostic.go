package policy

import (
	"cmp"
	"slices"
	"strings"
)

// Severity is the severity of a finding: an error forbids the policy, a warning does not.
type Severity string

// Severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Severity returns the severity of findings with the code. The first letter of the code determines it.
func (c Code) Severity() Severity {
	if strings.HasPrefix(string(c), "W-") {
		return Warning
	}
	return Error
}

// Diagnostic is one finding: the place, the problem and a hint.
type Diagnostic struct {
	Place
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint"`
	// Related holds other places that belong to the finding, such as the first of two declarations of one name.
	Related []RelatedPlace `json:"related,omitempty"`

	// left is the number of omitted findings that this one stands for.
	left int
}

// RelatedPlace is another place that belongs to a finding.
type RelatedPlace struct {
	Place
	Message string `json:"message"`
}

// String returns "file:line:column: CODE message".
func (d Diagnostic) String() string {
	if place := d.Place.String(); place != "" {
		return place + ": " + string(d.Code) + " " + d.Message
	}
	return string(d.Code) + " " + d.Message
}

// Diagnostics holds findings, sorted by place and code.
type Diagnostics []Diagnostic

// HasErrors reports whether a finding is an error.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Total returns the number of findings, including the omitted ones.
func (ds Diagnostics) Total() int {
	total := len(ds)
	for _, d := range ds {
		if d.left > 0 {
			total += d.left - 1
		}
	}
	return total
}

// Merge returns the findings of both lists, sorted and without duplicates.
func (ds Diagnostics) Merge(others Diagnostics) Diagnostics {
	all := slices.Concat(ds, others)
	slices.SortStableFunc(all, Diagnostic.compare)
	return slices.CompactFunc(all, func(a, b Diagnostic) bool { return a.compare(b) == 0 })
}

func (d Diagnostic) compare(o Diagnostic) int {
	return cmp.Or(
		d.Place.compare(o.Place), cmp.Compare(d.Code, o.Code), cmp.Compare(d.Message, o.Message),
		slices.CompareFunc(d.Related, o.Related, func(a, b RelatedPlace) int { return a.Place.compare(b.Place) }),
	)
}
