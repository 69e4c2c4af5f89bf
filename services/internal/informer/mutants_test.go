package informer_test

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// mutants returns bugs with which a service would decide from an old state, or from a part of the objects.
func mutants() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"another object of the name is what was there":           {"shelf.go", "was.UID == is.UID && was.Epoch", "was.Epoch"},
		"what sinks handed on before is not void":                {"feed.go", "		t.beginLoad()\n	}\n	for _, f := range v.onBegin {\n		f()\n	}\n", "		t.beginLoad()\n	}\n"},
		"nobody waits for the end of the stream":                 {"feed.go", "meta.Sequence.Stream >= end {", "meta.Sequence.Stream+end >= end {"},
		"what is told of is not waited for":                      {"feed.go", "loading, v.marked = 0, 0, true, false", "loading, v.marked = 0, 0, v.streamID == \"\", false"},
		"one marker of many is enough":                           {"feed.go", "v.marked = v.marked || left == 0", "v.marked = true"},
		"nobody counts":                                          {"feed.go", "!settled && size != m.message.GetCount()", "!settled && size < 0"},
		"a barrier from before the load counts":                  {"age.go", "case !proven && meta.Sequence.Stream < end:", "case false:"},
		"a barrier of another life counts":                       {"age.go", "case proven && !barrier.IsAtOrAfter(&b, last.Position):", "case false:"},
		"a barrier is not required":                              {"age.go", "	case !ok:\n", "	case !ok && false:\n"},
		"another consumer continues":                             {"age.go", "	if v.position > last {\n		return false\n", "	if false {\n		return false\n"},
		"another consumer is linked":                             {"age.go", "p.unlinked = true", "p.unlinked = false"},
		"another consumer continues a load":                      {"age.go", "return !v.loading && len(v.lastBarriers) > 0", "return true"},
		"barriers are of when they are read":                     {"age.go", "min(bootclock.Now(), c.asked+written.Sub(c.told))", "max(bootclock.Now(), c.asked+written.Sub(c.told))"},
		"the watcher is up to date":                              {"age.go", "bootclock.Since(p.at)+p.behind", "bootclock.Since(p.at)"},
		"to have read the stream is enough":                      {"age.go", "bootclock.Since(p.at)", "bootclock.Since(v.syncedAt)"},
		"of several watchers the youngest counts":                {"age.go", "age = max(age, ", "age = min(age, "},
		"while the stream is read the age is that of before":     {"age.go", ` || v.loading || len(v.lastBarriers) == 0`, ` || len(v.lastBarriers) == 0`},
		"a stream that lost its end goes on":                     {"barrier.go", "p.position > last", "p.position > last+1<<40"},
		"what is behind is all":                                  {"barrier.go", " || v.position < sequence {", " {"},
		"one life of the stream is as good as another":           {"barrier.go", "v.loading || v.streamID != streamID", "v.loading"},
		"a view that is read anew is current":                    {"barrier.go", "	if err := v.IncompleteErr(); err != nil {\n		return err\n	}\n", ""},
		"what the leader has is not asked":                       {"barrier.go", "	if err := v.AwaitCaughtUp(ctx); err != nil {\n		return err\n	}\n", ""},
		"a watcher that is silent is none the less believed":     {"barrier.go", "v.Staleness() > maxBarrierAge", "v.Staleness() < 0"},
		"a feed that brings nothing is kept":                     {"barrier.go", "stuck == maxStuck", "stuck < 0"},
		"who was heard once is heard":                            {"view.go", "old > maxUnverified", "old < 0"},
		"what is read is complete":                               {"view.go", `v.streamID == "" || v.loading || !v.marked`, `v.streamID == ""`},
		"a marker of another life speaks of this":                {"view.go", "case m.message.GetStream() != v.streamID:", `case m.message.GetStream() == "":`},
		"a marker speaks of what is not read":                    {"view.go", "case m.message.GetLastSequence() > v.position:", "case false:"},
		"of one cluster the snapshot is enough":                  {"view.go", "	for cluster := range v.lastBarriers {\n		known[cluster] = true\n	}\n", ""},
		"a revision is of any life":                              {"revision.go", "life.Equal(streamCreated) && v.position >= sequence", "v.position >= sequence"},
		"a revision is held before it is read":                   {"revision.go", "v.position >= sequence", "v.position+1 >= sequence"},
		"a kind that is not counted is observed":                 {"targets.go", "m.counted && m.message.GetServed()", "m.message.GetServed()"},
		"a kind with a problem is observed":                      {"targets.go", ` && m.message.GetProblem() == "",`, ","},
		"a kind that is not served is observed":                  {"targets.go", "m.counted && m.message.GetServed()", "m.counted"},
		"a kind that is withdrawn is observed":                   {"targets.go", " || m.message.GetWithdrawn() {\n		return TargetKindStatus{}", " {\n		return TargetKindStatus{}"},
		"targets of which nobody was told are there":             {"targets.go", "m.message.GetStream() == v.streamID && !m.told", "m.message.GetStream() == v.streamID && false"},
		"objects of a kind that is withdrawn stay":               {"targets.go", "			t.dropInSnapshot(of)\n", "			_ = t\n"},
		"what is as new is taken":                                {"sink.go", "	if !s.isNewChange(c) {\n		return false\n", "	if !s.isNewChange(c) && c.Deleted {\n		return false\n"},
		"old deletions are forgotten":                            {"sink.go", "if !s.isForgettable(gone.load, gone.Epoch, c) && ", "if false && "},
		"another epoch is the same":                              {"sink.go", "return load != s.loads && epoch != c.Epoch", "return false"},
		"whatever was before the load is forgotten":              {"sink.go", "return load != s.loads && epoch != c.Epoch", "return load != s.loads"},
		"an older state is taken when the stream is read anew":   {"sink.go", "return held.load != s.loads && held.epoch.Value() == c.Epoch && held.isNewerThan(c)", "return false"},
		"what nobody has any more is not asked for":              {"sink.go", "was.load, was.blank, was.sequence = s.loads, true, 0", "was.load, was.sequence = s.loads, 0"},
		"the deletion of another object takes one away":          {"sink.go", "if live && (was.uid == c.UID || was.epoch.Value() == c.Epoch) && ", "if live && "},
		"an old deletion takes a new object away":                {"sink.go", " && c.Replaces(was.toChange(c.Key)) {\n		s.removeVersion", " {\n		s.removeVersion"},
		"nobody is told of deletions":                            {"sink.go", "		s.onChange(c, nil)\n", "		_ = s.onChange\n"},
		"deletions are not remembered":                           {"sink.go", "	s.putTombstone(c)\n}\n\n// replaceLive", "}\n\n// replaceLive"},
		"what is displaced may come back":                        {"sink.go", "was.epoch.Value() != c.Epoch) {\n		s.addTombstoneForReplaced(was, c)\n", "was.epoch.Value() != c.Epoch) {\n		_ = was\n"},
		"what cannot be read says what was begun":                {"sink.go", "			value = nil\n", ""},
		"one load is as another":                                 {"sink.go", "func (s *Forwarder[T]) beginLoad() { s.loads++ }", "func (s *Forwarder[T]) beginLoad() {}"},
		"what the stream has no more is there":                   {"sink.go", "			if held.load != s.loads {\n", "			if held.load > s.loads {\n"},
		"a time that is none hides an object":                    {"../event/decode.go", "replaceInvalidTimes(object)\n", "replaceInvalidTimes(nil)\n"},
		"deletions from before the load are of before for ever":  {"sink.go", "			all[i] = loadedTombstone{all[i].asOfLoad(s.loads), s.loads}\n", "			all[i] = loadedTombstone{all[i].asOfLoad(s.loads), all[i].load}\n"},
		"deletions are never forgotten":                          {"sink.go", "return isExpiredTombstone(m.Change, now)", "return false && isExpiredTombstone(m.Change, now)"},
		"of two replicas that hold other states nobody can tell": {"sink.go", "	s.sum ^= digestState(c)\n", ""},
	}
}

func TestEveryMutantIsOneOfTheCodeAsItIs(t *testing.T) { mutant.CheckMutantsApply(t, ".", mutants()) }
