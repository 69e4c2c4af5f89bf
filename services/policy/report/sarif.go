package report

import (
	"net/url"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// RenderSARIF returns a SARIF log of version 2.1.0 with one run.
func RenderSARIF(found policy.Diagnostics) ([]byte, error) {
	codes := map[policy.Code]bool{}
	results := make([]sarifResult, 0, len(found))
	for _, d := range found {
		codes[d.Code] = true
		r := sarifResult{
			RuleID: d.Code, Level: d.Severity, Message: sarifText{d.Message + ". Hint: " + d.Hint}, Locations: sarifLocations(d.Place, ""),
		}
		for _, related := range d.Related {
			r.Related = append(r.Related, sarifLocations(related.Place, related.Message)...)
		}
		results = append(results, r)
	}
	rules := make([]sarifRule, 0, len(codes))
	for code := range codes {
		rules = append(rules, sarifRule{ID: code, Short: sarifText{code.Description()}, Help: code.HelpURL()})
	}
	slices.SortFunc(rules, func(a, b sarifRule) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return marshalIndented(sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{sarifDriver{Name: "entail", Rules: rules}}, Results: results}},
	})
}

type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    policy.Code `json:"id"`
		Short sarifText   `json:"shortDescription"`
		Help  string      `json:"helpUri"`
	}
	sarifResult struct {
		RuleID    policy.Code     `json:"ruleId"`
		Level     policy.Severity `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
		Related   []sarifLocation `json:"relatedLocations,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysicalLocation  `json:"physicalLocation"`
		Logical  []sarifLogicalLocation `json:"logicalLocations,omitempty"`
		Message  *sarifText             `json:"message,omitempty"`
	}
	sarifPhysicalLocation struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
	sarifLogicalLocation struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// sarifLocations returns one location, or none for a finding without a file.
func sarifLocations(p policy.Place, message string) []sarifLocation {
	if p.File == "" {
		return nil
	}
	l := sarifLocation{Physical: sarifPhysicalLocation{Artifact: sarifArtifact{URI: (&url.URL{Path: p.File}).String()}}}
	if p.Line > 0 {
		l.Physical.Region = &sarifRegion{StartLine: p.Line, StartColumn: p.Column}
	}
	if p.Path != "" {
		l.Logical = []sarifLogicalLocation{{Name: p.Path}}
	}
	if message != "" {
		l.Message = &sarifText{message}
	}
	return []sarifLocation{l}
}
