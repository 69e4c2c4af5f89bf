package diff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// RenderText returns the changes for people, grouped by class.
func RenderText(changes []PolicyChange) string {
	if len(changes) == 0 {
		return "no change in meaning\n"
	}
	var b strings.Builder
	for i, c := range changes {
		if i == 0 || c.Class != changes[i-1].Class {
			fmt.Fprintf(&b, "%s:\n", strings.ReplaceAll(string(c.Class), "-", " "))
		}
		b.WriteString("  ")
		if place := cmp.Or(c.New.String(), c.Old.String()); place != "" {
			b.WriteString(place + ": ")
		}
		b.WriteString(c.Message + "\n")
	}
	return b.String()
}

// RenderJSON returns the changes for programs, with their worst class.
func RenderJSON(changes []PolicyChange) ([]byte, error) {
	report := struct {
		Worst   ChangeClass    `json:"worst"`
		Changes []PolicyChange `json:"changes"`
	}{WorstClass(changes), changes}
	if changes == nil {
		report.Changes = []PolicyChange{}
	}
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding %d changes: %w", len(changes), err)
	}
	return append(data, '\n'), nil
}
