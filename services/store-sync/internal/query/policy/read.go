package policy

import (
	"context"
	"fmt"
	"strings"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// What a policy may have here; the command line takes more.
const (
	maxBytes = 4 << 20
	maxNodes = 1_000_000
	// maxName and maxOwner are how long names may be, since answers repeat them. No engine takes a longer one.
	maxName, maxOwner = 256, 256
	// maxParts is how many ways to an action on a type, and targets of relations, there may be
	// together: unions multiply them.
	maxParts = 200_000
)

// read is the policy that a request means, nil where it has errors.
func (s *Server) read(ctx context.Context, m *policyv1.Policy) (*policy.Policy, policy.Diagnostics, error) {
	var documents []*syntax.Document
	var unreadable policy.Diagnostics
	options := optionsOf(m.GetOptions())
	if store := m.GetStore(); store != "" {
		registered, own, err := s.registered(ctx, store)
		if err != nil {
			return nil, nil, err
		}
		if documents = registered; m.GetOptions() == nil {
			options = own
		}
	} else {
		documents, unreadable = documentsOf(m.GetFiles().GetFiles())
	}
	if err := options.Validate(); err != nil {
		return nil, nil, rpc.Invalid("options: %s", err)
	}
	p, wrong := check.Documents(documents, options)
	found := unreadable.Join(wrong)
	if p != nil {
		found = found.Join(oversized(p))
	}
	if found.HasErrors() {
		return nil, found, nil
	}
	return p, found, nil
}

func documentsOf(written []*policyv1.File) ([]*syntax.Document, policy.Diagnostics) {
	var files []syntax.File
	for _, f := range written {
		files = append(files, syntax.File{Name: f.GetName(), Content: f.GetContent()})
	}
	documents, found := syntax.Parse(files, syntax.Limits{Bytes: maxBytes, Nodes: maxNodes})
	for _, d := range documents {
		if owner := d.Source.Owner; len(owner) > maxOwner {
			d.Source.Owner = strings.ToValidUTF8(owner[:maxOwner], "")
		}
	}
	return documents, found
}

func optionsOf(m *policyv1.Options) policy.Options {
	return policy.Options{
		Strict: m.GetStrict(), RoleSuffix: m.GetRoleSuffix(), RoleType: m.GetRoleType(), RoleRelation: m.GetRoleRelation(),
		SubjectTypes: m.GetSubjectTypes(), Partial: m.GetPartial(),
	}
}

// oversized finds in a valid policy what would make answers too large.
func oversized(p *policy.Policy) policy.Diagnostics {
	var found policy.Collector
	name := func(source *policy.Source, at policy.Position, text string) {
		if len(text) > maxName {
			found.Add(source.At(at), policy.CodeLimit, fmt.Sprintf("%.64q has %d characters, of at most %d", text, len(text), maxName), "shorten it")
		}
	}
	parts := 0
	for _, t := range p.Types {
		name(t.Source, t.At, t.Name)
		name(t.Source, t.At, t.IDPrefix)
		for _, b := range t.Bindings {
			parts += 1 + len(b.Steps)
		}
		for _, r := range t.Relations {
			name(r.Source, r.At, r.Name)
			parts += len(r.Targets)
		}
	}
	for _, u := range p.Unions {
		name(u.Source, u.At, u.Name)
	}
	for _, a := range p.Actions {
		name(a.Source, a.At, a.Name)
	}
	if parts > maxParts {
		found.Add(policy.Place{}, policy.CodeLimit,
			fmt.Sprintf("the policy has %d ways to actions and targets of relations together, of at most %d here", parts, maxParts),
			"make unions or the bindings of them smaller, or use `entail policy` on its files")
	}
	return found.Diagnostics()
}
