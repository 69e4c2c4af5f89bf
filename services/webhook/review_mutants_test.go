package webhook

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// reviewMutants returns faults of the conversion of reviews. They trust a request too much, or answer no when the
// answer is unknown. Other authorizers have had most of them.
func reviewMutants() map[string]mutant.Mutant {
	const request, parent, identity, review = "internal/review/request.go", "internal/review/parent.go", "internal/review/identity.go", "internal/review/review.go"
	const answer, handler = "internal/review/answer.go", "internal/authorizer/handler.go"
	return map[string]mutant.Mutant{
		"a claimed parent counts":                        {request, "rules.TrustParents && ", ""},
		"a claimed parent counts for who is known":       {parent, " || followed && q.Name != \"\"", " || followed && q.Name == \"-\""},
		"a namespace may be claimed":                     {parent, "r.Parent.Type == namespace || ", ""},
		"of several parents the first is claimed":        {parent, "len(group) != 1 || len(kind) != 1 || len(name) != 1 ||", "len(group) < 1 || len(kind) < 1 || len(name) < 1 ||"},
		"an organization has all namespaces":             {parent, "r.Namespace != \"\" && r.Namespace != within &&", "r.Namespace == \"-\" && r.Namespace != within &&"},
		"an organization's question is about all":        {parent, "r.Namespace == \"\" && rules.IsNamespacedType(typ)", "r.Namespace == \"-\" && rules.IsNamespacedType(typ)"},
		"an organization has what nobody knows":          {parent, "		return r.Namespace != \"\"\n", "		return true\n"},
		"what is in no namespace has one":                {request, "; rules.isClusterScopedType(k.Type) {", "; false {"},
		"what is to be made is there":                    {request, "		q.Name = \"\" // It may", "		_ = q.Name // It may"},
		"what is made of an object is made of all":       {request, "r.Verb == \"create\" && r.Subresource == \"\"", "r.Verb == \"create\""},
		"a project need not be there":                    {request, "r.Project, true\n", "r.Project, false\n"},
		"the endpoint of a project is that of its kinds": {request, "	if r.Project != \"\" {", "	if r.Project == \"-\" {"},
		"masters are decided here":                       {request, "	case slices.Contains(r.Groups, \"system:masters\"):", "	case false && slices.Contains(r.Groups, \"system:masters\"):"},
		"nobody is somebody":                             {request, "	case r.UID == \"\" && r.User == \"\":", "	case false:"},
		"names are UIDs":                                 {identity, "r.Subject == ByUIDOrName && ", ""},
		"names of the system are those of users":         {identity, "u.UID == \"\" && !ofSystem && ", "u.UID == \"\" && "},
		"UIDs of the system are those of users":          {identity, "u.UID != \"\" && !ofSystem:", "u.UID != \"\":"},
		"accounts are users":                             {identity, "		s.Account = u.UID\n", "		s.User = u.UID\n"},
		"of the system all groups count":                 {identity, "func(g string) bool { return !isSystemName(g) }", "func(string) bool { return false }"},
		"everybody has what nobody has":                  {identity, "	if r.Anonymous {", "	if !r.Anonymous {"},
		"groups go by the name of the other version":     {review, "		r.Groups = m.Spec.Group\n", "		r.Groups = append(r.Groups, m.Spec.Group...)\n"},
		"both sorts of attributes are taken":             {review, "	if r.Resource != nil == (r.NonResource != nil) {", "	if r.Resource == nil && r.NonResource == nil {"},
		"whatever a selector says it names one":          {review, "len(of) == 1 && of[0].Operator == \"In\" && len(of[0].Values) == 1", "len(of) > 0 && len(of[0].Values) > 0"},
		"an answer is in the version of today":           {answer, "APIVersion: version,", "APIVersion: v1,"},
		"a refusal denies":                               {handler, "answer.Denied = h.cfg.ExplicitDeny", "answer.Denied = true || h.cfg.ExplicitDeny"},
		"what nobody can tell is no opinion":             {handler, "	} else if d.would, err = h.decideWithTimeout(ctx, d); err != nil {\n		return temporaryError(err)\n", "	} else if d.would, err = h.decideWithTimeout(ctx, d); err != nil {\n		d.would = review.Abstain(err)\n"},
		"what is registered nobody needs to know":        {handler, "	if err != nil {\n		return temporaryError(err)\n	}\n	request", "	if err != nil {\n		d.answer = review.Abstain(err)\n		return nil\n	}\n	request"},
		"when nobody can tell it is a mistake":           {handler, "httpError{http.StatusServiceUnavailable,", "httpError{http.StatusOK,"},
		"whoever has a certificate may ask":              {handler, "		!slices.Contains(h.cfg.ClientNames, r.TLS.VerifiedChains[0][0].Subject.CommonName)) {", "		false && !slices.Contains(h.cfg.ClientNames, r.TLS.VerifiedChains[0][0].Subject.CommonName)) {"},
		"whatever the size it is read":                   {handler, "http.MaxBytesReader(w, r.Body, maxReview)", "http.MaxBytesReader(w, r.Body, 100*maxReview)"},
		"any type is JSON":                               {handler, "typ != \"application/json\" || ", "typ == \"\" || "},
	}
}

func TestEveryMutantOfTheReviewIsOneOfTheCodeAsItIs(t *testing.T) {
	mutant.CheckMutantsApply(t, ".", reviewMutants())
}
