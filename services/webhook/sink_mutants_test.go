package webhook

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// sinkMutants returns faults by which the index could lack changes of NATS, keep old ones, or answer while it is
// incomplete.
func sinkMutants() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"the index of before answers while the bus is read":     {"state.go", "	s.shown.Store(nil)\n", ""},
		"what was is kept when the bus is read":                 {"state.go", "	s.made = authz.New(s.isTrustedType)\n", "	if s.made == nil {\n		s.made = authz.New(s.isTrustedType)\n	}\n"},
		"what is read is shown before all of it is":             {"state.go", "	s.shown.Store(nil)\n	s.made = authz.New(s.isTrustedType)\n", "	s.made = authz.New(s.isTrustedType)\n	s.shown.Store(s.made)\n"},
		"nobody is told of what tables hold":                    {"state.go", "				kind.tellAll(s.made)\n", "				_ = kind.tellAll\n"},
		"nobody is told of targets when all is read":            {"state.go", "			s.setIndexTarget(s.made, s.targets.told[key.GroupResource].typ, key)\n", "			_ = key\n"},
		"changes of targets are not told":                       {"state.go", "		s.setIndexTarget(x, s.targets.told[key.GroupResource].typ, key)\n", "		_ = key\n"},
		"changes are not told":                                  {"state.go", "		kind.tell(x, key)\n", "		_ = kind.tell\n"},
		"what is gone from tables stays":                        {"state.go", "			o, _ := table.Get(key)\n			tell(", "			o, there := table.Get(key)\n			if !there {\n				return\n			}\n			tell("},
		"what sinks were told is gone stays":                    {"state.go", "		set(s.made, c.Key, o)\n", "		if o != nil {\n			set(s.made, c.Key, o)\n		}\n"},
		"what sinks are told is no target":                      {"state.go", "		s.made.SetTarget(typeOfKind(kind), c.Key.Namespace, c.Key.Name, targetOfObject[T, P](o))\n", ""},
		"the index of before is told by sinks":                  {"state.go", "		set(s.made, c.Key, o)\n", "		if x := s.shown.Load(); x != nil {\n			set(x, c.Key, o)\n		}\n"},
		"what is in deletion is a target":                       {"state.go", "	if !alive {\n", "	if !alive && o == nil {\n"},
		"objects of IAM are trusted":                            {"state.go", "s.trust && !observed && !isIAMType(typ)", "s.trust && !observed"},
		"what is observed is trusted":                           {"state.go", "s.trust && !observed &&", "s.trust && (!observed || true) &&"},
		"nothing needs to be trusted":                           {"state.go", "return s.trust && !observed", "return !observed"},
		"what is not observed is there":                         {"targets.go", "!is.observed || is.typ != typ", "is.typ != typ"},
		"what is not observed is":                               {"targets.go", "is.Observed, is.Observed && is.Namespaced}", "is.Kind != \"\", is.Observed && is.Namespaced}"},
		"what is not observed is known not to be there":         {"targets.go", "		x.SetTypeObserved(typ, observed)\n", "		x.SetTypeObserved(typ, observed || true)\n"},
		"what is observed is never known not to be there":       {"targets.go", "		x.SetTypeObserved(typ, observed)\n", "		_ = observed\n"},
		"what was observed is":                                  {"targets.go", "		if one.observed {\n", "		if one.observed || one == now {\n"},
		"objects of a kind that is observed now are not told":   {"targets.go", "		if key.GroupResource == kind {\n", "		if key.GroupResource != kind {\n"},
		"a kind is gone with one of its names":                  {"targets.go", "		_, observed := s.targets.isNamespacedType(typ)\n", "		observed := typ == now.typ && now.observed\n"},
		"an object is gone with one of its names":               {"targets.go", "	for key.GroupResource = range t.told {\n", "	for range t.told {\n"},
		"what was of a kind stays there when that has another":  {"targets.go", "types := []string{was.typ, now.typ}", "types := []string{now.typ}"},
		"what is trusted is not asked anew":                     {"targets.go", "			x.RefreshTypeTrust(typ)\n", ""},
		"what is told of a kind of IAM counts":                  {"targets.go", `now.typ == "" || isIAMType(now.typ)`, `now.typ == ""`},
		"what is incomplete answers":                            {"server.go", "	if err := s.view.IncompleteErr(); err != nil {\n		return err\n	}\n", ""},
		"what is old answers":                                   {"server.go", "age > s.staleness", "age < 0"},
		"people are answered by what is old":                    {"server.go", "	if err := s.checkIndexIsFresh(); err != nil { // Checked", "	if err := s.checkIndexIsFresh(); err != nil && false { // Checked"},
		"the API server is answered by what is old":             {"server.go", "	if err := s.checkIndexIsFresh(); err != nil {\n		return nil, err\n	}\n	x, err := s.state.currentIndex()", "	x, err := s.state.currentIndex()"},
		"a revision need not be reached":                        {"server.go", "s.view.AwaitRevision(ctx, sequence, began); err != nil", "s.view.AwaitRevision(ctx, sequence, began); err != nil && false"},
		"an object need not be known":                           {"server.go", "s.awaitRequestedObject(ctx, event.KeyFromRef(least.GetObject())); err != nil", "s.awaitRequestedObject(ctx, event.KeyFromRef(least.GetObject())); err != nil && false"},
		"any object of the name is the one that is waited for":  {"expectation.go", "held.UID != e.uid || ", ""},
		"an older state of an object is the one to wait for":    {"expectation.go", "	if same() {\n", "	if same() || true {\n"},
		"who gives rights is judged by what was":                {"webhooks.go", "s.view.CheckCurrent(ctx)", "s.view.Complete()"},
		"what cannot be read says what was there":               {"state.go", "	cfg.KeepUndecodable = true\n", ""},
		"who may not answer is ready":                           {"webhook.go", `{Name: "view", Err: s.checkIndexIsFresh}, `, ""},
		"a preview is of no revision":                           {"lists.go", "Gains: toMessages(preview.Gains, toGainMessage), Revision: revision,", "Gains: toMessages(preview.Gains, toGainMessage), Revision: revision[:0],"},
		"what somebody may is of no revision":                   {"lists.go", "Rights: rights, NextPageToken: next, Revision: revision}", "Rights: rights, NextPageToken: next, Revision: revision[:0]}"},
		"what is protected is of no revision":                   {"lists.go", "Resources: resources, NextPageToken: next, Revision: revision}", "Resources: resources, NextPageToken: next, Revision: revision[:0]}"},
		"a model has as many types as kinds":                    {"model.go", "Types: int32(len(types))", "Types: int32(len(registry.Kinds()))"},
		"what was said of another model is said of this":        {"model.go", "answer.GetSynced() && !isMadeFromRegistry", "false && !isMadeFromRegistry"},
		"whatever is said of a model it is there":               {"model.go", "c.Status == \"True\" && ", ""},
		"others' matters are one's own":                         {"caller.go", "(asked.User == \"\" || asked.User == own.User)", "true"},
		"groups of others are one's own":                        {"caller.go", "!slices.Contains(own.Groups, g)", "false && !slices.Contains(own.Groups, g)"},
		"what is asked about nobody is about whoever asks last": {"caller.go", "	if !known {\n", "	if !known && false {\n"},
	}
}

func TestEveryMutantOfTheSinkIsOneOfTheCodeAsItIs(t *testing.T) {
	mutant.CheckMutantsApply(t, ".", sinkMutants())
}
