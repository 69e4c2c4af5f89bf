package report

import (
	"net/url"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// SARIF returns a SARIF log of version 2.1.0 with one run.
func SARIF(found policy.Diagnostics) ([]byte, error) {
	codes := map[policy.Code]bool{}
	results := make([]result, 0, len(found))
	for _, d := range found {
		codes[d.Code] = true
		r := result{
			RuleID: d.Code, Level: d.Severity, Message: text{d.Message + ". Hint: " + d.Hint}, Locations: locations(d.Place, ""),
		}
		for _, related := range d.Related {
			r.Related = append(r.Related, locations(related.Place, related.Message)...)
		}
		results = append(results, r)
	}
	rules := make([]rule, 0, len(codes))
	for code := range codes {
		rules = append(rules, rule{ID: code, Short: text{code.Description()}, Help: code.Help()})
	}
	slices.SortFunc(rules, func(a, b rule) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return marshal(sarif{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []run{{Tool: tool{driver{Name: "entail", Rules: rules}}, Results: results}},
	})
}

type (
	sarif struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []run  `json:"runs"`
	}
	run struct {
		Tool    tool     `json:"tool"`
		Results []result `json:"results"`
	}
	tool struct {
		Driver driver `json:"driver"`
	}
	driver struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	rule struct {
		ID    policy.Code `json:"id"`
		Short text        `json:"shortDescription"`
		Help  string      `json:"helpUri"`
	}
	result struct {
		RuleID    policy.Code     `json:"ruleId"`
		Level     policy.Severity `json:"level"`
		Message   text            `json:"message"`
		Locations []location      `json:"locations,omitempty"`
		Related   []location      `json:"relatedLocations,omitempty"`
	}
	text struct {
		Text string `json:"text"`
	}
	location struct {
		Physical physical  `json:"physicalLocation"`
		Logical  []logical `json:"logicalLocations,omitempty"`
		Message  *text     `json:"message,omitempty"`
	}
	physical struct {
		Artifact artifact `json:"artifactLocation"`
		Region   *region  `json:"region,omitempty"`
	}
	artifact struct {
		URI string `json:"uri"`
	}
	region struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
	logical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// locations returns one location, or none for a finding without a file.
func locations(p policy.Place, message string) []location {
	if p.File == "" {
		return nil
	}
	l := location{Physical: physical{Artifact: artifact{URI: (&url.URL{Path: p.File}).String()}}}
	if p.Line > 0 {
		l.Physical.Region = &region{StartLine: p.Line, StartColumn: p.Column}
	}
	if p.Path != "" {
		l.Logical = []logical{{Name: p.Path}}
	}
	if message != "" {
		l.Message = &text{message}
	}
	return []location{l}
}
