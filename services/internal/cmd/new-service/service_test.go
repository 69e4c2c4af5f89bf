package main

import (
	"strings"
	"testing"
)

// checkout is the one that this program is part of.
const checkout tree = "../../../.."

func TestANameIsSpelledInEveryWayThatItIsNeeded(t *testing.T) {
	for name, want := range map[string]service{
		"audit":         {Package: "audit", Type: "Audit", Account: "audit", Title: "Audit", Metric: "audit"},
		"example-sync":  {Package: "examplesync", Type: "ExampleSync", Account: "exampleSync", Title: "Example-sync", Metric: "example_sync"},
		"a-2nd-example": {Package: "a2ndexample", Type: "A2ndExample", Account: "a2ndExample", Title: "A-2nd-example", Metric: "a_2nd_example"},
	} {
		want.Name = name
		got, err := newService(checkout, name)
		if want.Root, want.Go = "github.com/entail-dev/entail", got.Go; err != nil || got != want || !strings.HasPrefix(got.Go, "1.") {
			t.Errorf("%s is %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func TestANameThatCannotBeOneIsRefused(t *testing.T) {
	for what, c := range map[string]struct{ name, why string }{
		"in capitals":                   {"Example", "names no service"},
		"with an underscore":            {"example_sync", "names no service"},
		"with a path":                   {"../example", "names no service"},
		"with nothing between hyphens":  {"example--sync", "names no service"},
		"with a hyphen at the end":      {"example-", "names no service"},
		"with a digit first":            {"2nd-example", "names no service"},
		"too long for a label":          {strings.Repeat("a", maxName+1), "names no service"},
		"of a service":                  {"tuple-sync", "there is services/tuple-sync"},
		"of a service but for a hyphen": {"tuplesync", "there is services/tuple-sync"},
		"of a library":                  {"policy", "there is services/policy"},
		"of a shared package":           {"topology", "there is services/internal/topology"},
		"of a contract":                 {"inference", "there is proto/entail/inference"},
		"of another part":               {"chaos", "there is deploy/chaos"},
		"of a word of Go":               {"func", "no package can be named func"},
		"of a stream":                   {"dead-letters", "DeadLetters in services/internal/topology"},
		"of a helper":                   {"statuses", "statuses in services/internal/rbac"},
		"of an import":                  {"slices", "slices in services/internal/rbac"},
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := newService(checkout, c.name); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%q: %v, want %s", c.name, err, c.why)
			}
		})
	}
}

func TestANameOfARoomIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	for _, room := range []string{"reconcile", "apply", "status", "metrics", "state", "server"} {
		s, err := newService(checkout, room)
		if err == nil {
			_, err = s.skeleton(checkout)
		}
		if err == nil || !strings.Contains(err.Error(), "choose another name") {
			t.Errorf("%s: %v", room, err)
		}
	}
}

func TestWithoutANameItIsToldHowToGiveOne(t *testing.T) {
	if err := run([]string{string(checkout), ""}); err == nil || !strings.Contains(err.Error(), "NAME=") {
		t.Error(err)
	}
}
