package model_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/store-sync/model"
)

// confusingDefinitions returns definitions that a parser by lines would confuse.
func confusingDefinitions() map[string]string {
	return map[string]string{
		"as people write it":                 "\ntype kept\n  relations\n    define viewer: [user with c]\n\ncondition c(x: int) {\n  x == 1\n}\n",
		"beside a condition like a type":     "\ncondition c(type: int) {\n  type == 1\n}\n",
		"beside a condition like a relation": "\ncondition c(define: bool) {\n  define\n}\n",
	}
}

func TestMergeGivesFreedDefinitionToNewOwner(t *testing.T) {
	const boss = "module b\n\nextend type user\n  relations\n    define boss: [hub]\n"
	for name, more := range confusingDefinitions() {
		t.Run(name, func(t *testing.T) {
			hub, old := named("a", "module a\n\ntype hub\n"), named("b", boss+more)
			hub.Created, old.Created = time.Unix(1, 0), time.Unix(2, 0)
			without := withLiveTextsOf(t, withLiveTextsOf(t, []model.Module{coreModule("module core\n\ntype user\n"), hub, old}))
			heir := named("c", "module c\n\nextend type user\n  relations\n    define boss: [user]\n")
			heir.Created = time.Unix(3, 0)
			later := withLiveTextsOf(t, withLiveTextsOf(t, append(without[:1:1], without[2], heir)))
			again := mergeAll(t, append(later, hub))
			if is := states(again.Reports)[heir.Origin]; is != model.Merged {
				t.Errorf("who defined it meanwhile is %s: %v", is, again.Reports)
			}
			if is := states(again.Reports)[old.Origin]; is != model.LastGoodLive {
				t.Errorf("who had it before, and more, is %s: %v", is, again.Reports)
			}
		})
	}
}

func TestMergeInvalidEditDoesNotRestoreRemovedDefinition(t *testing.T) {
	for name, more := range confusingDefinitions() {
		t.Run(name, func(t *testing.T) {
			const reader = "module b\n\ntype folder\n  relations\n    define reader: [user]\n"
			modules := withLiveTextsOf(t, []model.Module{coreModule("module core\n\ntype user\n"), named("b", reader+"    define writer: [user]\n"+more)})
			for _, edit := range []string{reader + "    define other: [nobody]\n" + more, typo} {
				modules[1].DSL = edit
				is := meaning(mergeAll(t, modules).Model)
				if _, there := is["folder#writer"]; there {
					t.Errorf("it is live with %q", edit)
				}
				if _, there := is["folder#reader"]; !there {
					t.Errorf("too much has gone with %q", edit)
				}
				modules = withLiveTextsOf(t, modules)
			}
		})
	}
}

func TestMergeAcceptsTextThatNeedsLastLiveTextOfRejectedEdit(t *testing.T) {
	const role, box = "type role\n  relations\n    define subject: [user]\n", "type box\n"
	older, newer := named("a", "module a\n\n"+role), named("b", "module b\n\n"+box)
	older.Created, newer.Created = time.Unix(1, 0), time.Unix(2, 0)
	modules := withLiveTextsOf(t, []model.Module{coreModule("module core\n\ntype user\n"), older, newer})
	modules[1].DSL += box // Module b has it, so the edit is rejected.
	modules[2].DSL += "  relations\n    define holder: [role#subject]\n"
	merged := mergeAll(t, modules)
	if is := states(merged.Reports); is[older.Origin] != model.LastGoodLive || is[newer.Origin] != model.Merged {
		t.Errorf("got %v, want a's last live text and b's new one", merged.Reports)
	}
}

// Two modules have the same text, and a rejected edit of one removes a relation. The core module then takes over a type of both.
func TestMergeKeepsLastLiveTextOfDuplicate(t *testing.T) {
	const text = "module m\n\ntype doc\n\ntype shelf\n  relations\n    define parent: [doc]\n"
	older, newer := named("a", text), named("b", text)
	older.Created, newer.Created = time.Unix(1, 0), time.Unix(2, 0)
	modules := withLiveTextsOf(t, []model.Module{coreModule("module core\n\ntype user\n"), older, newer})
	modules[1].DSL = text + "    define owner: [user]\n"
	modules = withLiveTextsOf(t, modules)
	modules[0].DSL = "module core\n\ntype user\n\ntype doc\n"
	modules[1].DSL = "module m\n\ntype doc\n\ntype shelf\n"
	if _, live := meaning(mergeAll(t, modules).Model)["shelf#parent"]; !live {
		t.Error("shelf#parent of b is lost, which b still declares")
	}
}

// Module b removes a definition that module a needs. Module c would define it, but c conflicts with b. Each of the
// three is live or out depending on the next one, so the first assumption of the merge is wrong. This must not count
// against b.
func TestMergeAcceptsRemovalThatAnotherModuleWouldMakeUpFor(t *testing.T) {
	const night = "\ncondition night(x: int) {\n  x > %d\n}\n"
	for name, of := range map[string]struct{ a, b, removal, c string }{
		"and that needs the module": {
			a: "type doc\n  relations\n    define editor: [box#viewer]\n    define viewer: [user] or editor\n",
			b: "type box\n  relations\n    define parent: [doc]\n    define viewer: [user] or viewer from parent\n", removal: "type box\n  relations\n    define parent: [doc]\n",
			c: "extend type box\n  relations\n    define viewer: [user] or viewer from parent\n",
		},
		"and that takes a definition over from the module": {
			a: "type doc\n  relations\n    define editor: [user]\ntype page\n  relations\n    define watcher: [secret#viewer]\n",
			b: "type secret\n  relations\n    define viewer: [user]\n", removal: "type secret\nextend type doc\n  relations\n    define editor: [user:*]\n",
			c: "type secret\n  relations\n    define viewer: [user]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			core, a, b, c := coreModule("module core\n\ntype user\n"), named("a", "module a\n\n"+of.a), named("b", "module b\n\n"+of.b), named("c", "module c\n\n"+of.c+fmt.Sprintf(night, 1))
			a.Created, b.Created, c.Created = time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0)
			b.DSL += fmt.Sprintf(night, 2)
			modules := withLiveTextsOf(t, []model.Module{core, a, b, c})
			modules[1].DSL = strings.Replace(modules[1].DSL, "editor: [user]", "reader: [user]", 1)
			modules[2].DSL = "module b\n\n" + of.removal + fmt.Sprintf(night, 2)
			merged := mergeAll(t, modules)
			if is := states(merged.Reports); is[b.Origin] != model.Merged || is[c.Origin] != model.Rejected {
				t.Errorf("got %v, want b merged and c rejected", merged.Reports)
			}
		})
	}
}

// Modules b and c need each other, and c would take over the remaining part of a. So the part of a, b and c depend on
// each other.
func TestMergeKeepsLastLiveTextFromModulesThatNeedEachOther(t *testing.T) {
	const secret = "type secret\n  relations\n    define viewer: [user]\n"
	core, a := coreModule("module core\n\ntype user\n"), named("a", "module a\n\ntype doc\nextend type user\n  relations\n    define watcher: [secret#viewer]\n")
	b, c := named("b", "module b\n\n"+secret), named("c", "module c\n\nextend type box\n  relations\n    define parent: [user]\nextend type user\n  relations\n    define watcher: [user]\n    define viewer: [user]\n")
	a.Created, b.Created, c.Created = time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0)
	modules := withLiveTextsOf(t, []model.Module{core, a, b, c})
	modules[0].DSL += "type doc\n"
	modules[2].DSL += "type box\n  relations\n    define viewer: [user] or viewer from parent\n"
	merged := mergeAll(t, modules)
	if is := states(merged.Reports); is[a.Origin] != model.LastGoodLive || is[b.Origin] != model.LastGoodLive || is[c.Origin] != model.Rejected {
		t.Errorf("got %v, want the last live texts of a and b, and c rejected", merged.Reports)
	}
}
