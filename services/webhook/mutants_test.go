package webhook

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// mutants returns faults by which OpenFGA, or one of its kept answers, could allow access wrongly.
func mutants() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"the store is not looked at":                      {"cache.go", "strconv.AppendQuote(nil, store.Status.StoreID)", "[]byte(nil)"},
		"the model is not looked at":                      {"cache.go", "strconv.AppendQuote(key, store.Status.AuthorizationModelID)", "key"},
		"what a request comes with is not looked at":      {"cache.go", "i < len(c.Context) && ", "i < 0 && "},
		"only what it comes with is looked at":            {"cache.go", "for i := -1;", "for i := 0;"},
		"parts of questions run together":                 {"cache.go", "key = strconv.AppendQuote(key, part)", "key = append(key, part[:1]...)"},
		"long questions are one":                          {"cache.go", `c == nil || key == "":`, "c == nil:"},
		"the index need not say the same":                 {"cache.go", "allowed == declared && c.age", "(allowed == declared || true) && c.age"},
		"the index may be as old as it likes":             {"cache.go", " && c.age() <= maxAge", ""},
		"answers are kept that the index contradicts":     {"cache.go", "case allowed == declared:", "case true:"},
		"answers are kept for ever":                       {"cache.go", "allowed, keptFor)", "allowed, 1000*keptFor)"},
		"what OpenFGA says is what is declared":           {"openfga.go", "_, declared := now.Decide(q)\n		o.cache.storeIfAgreed(key, allowed, declared)", "now.Decide(q)\n		o.cache.storeIfAgreed(key, allowed, allowed)"},
		"a yes with an error is one":                      {"openfga.go", "return err == nil && answer.GetAllowed(), err", "return answer.GetAllowed(), nil"},
		"old answers do":                                  {"openfga.go", "ConsistencyPreference_HIGHER_CONSISTENCY", "ConsistencyPreference_MINIMIZE_LATENCY"},
		"any model does":                                  {"openfga.go", "AuthorizationModelId: store.Status.AuthorizationModelID, ", ""},
		"who is two is asked about":                       {"openfga.go", `q.User != "" && q.Account != ""`, "false"},
		"what nobody can be allowed is asked":             {"openfga.go", "; !askable {", "; !askable && false {"},
		"more is told than is taken":                      {"openfga.go", " && len(parts[0].Context) <= maxContext", ""},
		"what is not asked is a no":                       {"openfga.go", "return declared, nil\n	}\n	store", "return declared && false, nil\n	}\n	store"},
		"a store without a model is asked":                {"openfga.go", ` || store.Status.AuthorizationModelID == ""`, ""},
		"any store is ours":                               {"openfga.go", "!ours {", "!ours && false {"},
		"another store is ours":                           {"openfga.go", "a.storeID == id && ", ""},
		"a store stays ours":                              {"openfga.go", " && time.Since(a.seen) < adoptionTTL", ""},
		"however many questions are asked":                {"openfga.go", " && len(parts) <= maxParts", ""},
		"only the first of many is asked":                 {"openfga.go", "err != nil || allowed {", "true {"},
		"what cannot be told is a no":                     {"openfga.go", "return why, false, fault.Unavailable(err)", "_ = fault.Unavailable(err)\n		return why, false, nil"},
		"a difference is told at once":                    {"verify.go", "case waited >= settling:", "case true:"},
		"OpenFGA that is down is a difference":            {"verify.go", "		case err != nil:\n			return unknown\n", "		case err != nil && false:\n			return unknown\n"},
		"the index is asked while it lacks something":     {"verify.go", "	if err := v.fresh(); err != nil {\n		return false, false, err\n	}\n", ""},
		"what OpenFGA says late is what it said":          {"verify.go", "want == got && waited < settlingStep", "want == got"},
		"any field is metadata":                           {"internal/validating/guard.go", "DecodeObjectCaseSensitive(request.Object", "Decode(request.Object"},
		"any field was metadata":                          {"internal/validating/guard.go", "DecodeObjectCaseSensitive(request.OldObject", "Decode(request.OldObject"},
		"an event is one of the core group alone":         {"internal/validating/owner.go", ", iam.OpenFGAType(eventsv1.GroupName, of.Kind)}", "}"},
		"events are kept for each group they have":        {"internal/validating/owner.go", `of.Kind == "Event" && `, `of.Kind == "-" && `},
		"what must be known may follow":                   {"follow.go", "allowed == declared {", "allowed == declared || true {"},
		"an object need not be known":                     {"follow.go", `least.GetRevision() == "" && least.GetObject() == nil`, `least.GetRevision() == ""`},
		"a revision need not be":                          {"follow.go", `least.GetRevision() == "" && least.GetObject() == nil`, "least.GetObject() == nil"},
		"who may is answered by what is old":              {"lists.go", "*accessv1.WhoCanResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())", "*accessv1.WhoCanResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, nil)"},
		"what somebody may is answered by what is old":    {"lists.go", "*accessv1.WhatCanResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())", "*accessv1.WhatCanResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, nil)"},
		"what is protected is answered by what is old":    {"lists.go", "\n) (*accessv1.ListProtectedResourcesResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())", "\n) (*accessv1.ListProtectedResourcesResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, nil)"},
		"a preview is of what is old":                     {"lists.go", "*accessv1.PreviewBindingResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())", "*accessv1.PreviewBindingResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, nil)"},
		"the model is that of what is old":                {"model.go", "*accessv1.GetModelStatusResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())", "*accessv1.GetModelStatusResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, nil)"},
		"why somebody may is answered by what is old":     {"server.go", "*accessv1.ExplainAccessResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())", "*accessv1.ExplainAccessResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, nil)"},
		"whether somebody may is answered by what is old": {"server.go", "*accessv1.CheckAccessResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())", "*accessv1.CheckAccessResponse, error) {\n	x, revision, err := s.awaitIndexAtLeast(ctx, nil)"},
		"whoever knows kinds has objects looked up":       {"server.go", "ok && r.GetAtLeast().GetObject() != nil {\n		return rightToReviewOthers", "ok && r.GetAtLeast() == nil {\n		return rightToReviewOthers"},
		"groups are told":                                 {"verify.go", `slog.Int("groups", len(q.Groups))`, `slog.Any("groups", q.Groups)`},
	}
}

func TestEveryMutantIsOneOfTheCodeAsItIs(t *testing.T) { mutant.CheckMutantsApply(t, ".", mutants()) }
