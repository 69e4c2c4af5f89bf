package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/internal/nearest"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// These constants bound a policy in a request. The command line accepts larger ones.
const (
	maxBytes = 4 << 20
	maxNodes = 1_000_000
	// maxName and maxOwner bound the length of names, because answers repeat them. No engine accepts a longer name.
	maxName, maxOwner = 256, 256
	// maxParts bounds the sum of all ways to an action on a type and all targets of relations. Unions multiply the
	// ways.
	maxParts = 200_000
)

// readPolicy returns the policy that a request describes, or nil if it has errors. Files are checked beside the accepted part
// of a Store's documents, so a refused document of another author does not affect them.
func (s *Server) readPolicy(ctx context.Context, m *policyv1.Policy, accepted bool) (*policy.Policy, policy.Diagnostics, error) {
	documents, unreadable := ParseDocuments(m.GetFiles().GetFiles())
	options := policyOptionsOf(m.GetOptions())
	if store := cmp.Or(m.GetStore(), m.GetBeside()); store != "" {
		registered, own, err := s.registered(ctx, store, accepted || m.GetBeside() != "")
		if err != nil {
			return nil, nil, err
		}
		if registered, err = withoutReplacedDocuments(registered, m.GetReplaces(), documents); err != nil {
			return nil, nil, err
		}
		if documents = append(documents, registered...); m.GetOptions() == nil {
			options = own
		}
	}
	if err := options.Validate(); err != nil {
		return nil, nil, rpc.InvalidError("options: %s", err)
	}
	p, wrong := check.Documents(documents, options)
	if m.GetBeside() != "" {
		wrong = withoutRegisteredWarnings(wrong)
	}
	found := unreadable.Merge(wrong)
	if p != nil {
		found = found.Merge(oversizeFindings(p))
	}
	if found.HasErrors() {
		return nil, found, nil
	}
	return p, found, nil
}

// object is the prefix of the name of every registered document.
const object = "policydocument/"

// withoutRegisteredWarnings drops the warnings about registered documents: the request is not about them.
func withoutRegisteredWarnings(found policy.Diagnostics) policy.Diagnostics {
	return slices.DeleteFunc(found, func(d policy.Diagnostic) bool {
		return d.Severity == policy.Warning && strings.HasPrefix(d.File, object)
	})
}

// withoutReplacedDocuments drops the registered documents that the request replaces: those in names, and those whose manifests are among
// others.
func withoutReplacedDocuments(registered []*syntax.Document, names []string, others []*syntax.Document) ([]*syntax.Document, error) {
	replaced := map[string]bool{}
	for _, name := range names {
		replaced[object+name] = true
		if !slices.ContainsFunc(registered, func(d *syntax.Document) bool { return d.Source.File == object+name }) {
			var known []string
			for _, d := range registered {
				known = append(known, strings.TrimPrefix(d.Source.File, object))
			}
			return nil, rpc.NotFoundError("no PolicyDocument %q refers to the Store%s", name, nearest.Hint(name, "PolicyDocuments", known))
		}
	}
	for _, d := range others {
		replaced[object+d.Object] = true
	}
	return slices.DeleteFunc(slices.Clone(registered), func(d *syntax.Document) bool { return replaced[d.Source.File] }), nil
}

// ParseDocuments parses the documents in files, within the bounds of a request.
func ParseDocuments(written []*policyv1.File) ([]*syntax.Document, policy.Diagnostics) {
	var files []syntax.File
	for _, f := range written {
		files = append(files, syntax.File{Name: f.GetName(), Content: f.GetContent()})
	}
	documents, found := syntax.ParseFiles(files, syntax.ParseLimits{Bytes: maxBytes, Nodes: maxNodes})
	for _, d := range documents {
		if owner := d.Source.Owner; len(owner) > maxOwner {
			d.Source.Owner = strings.ToValidUTF8(owner[:maxOwner], "")
		}
	}
	return documents, found
}

func policyOptionsOf(m *policyv1.Options) policy.Options {
	return policy.Options{
		Strict: m.GetStrict(), RoleSuffix: m.GetRoleSuffix(), RoleType: m.GetRoleType(), RoleRelation: m.GetRoleRelation(),
		SubjectTypes: m.GetSubjectTypes(), Partial: m.GetPartial(),
	}
}

// oversizeFindings returns findings on the parts of a valid policy that would make answers too large.
func oversizeFindings(p *policy.Policy) policy.Diagnostics {
	var found policy.DiagnosticCollector
	name := func(source *policy.DocumentSource, at policy.Position, text string) {
		if len(text) > maxName {
			found.Add(source.PlaceAt(at), policy.CodeLimit, fmt.Sprintf("%.64q has %d characters, of at most %d", text, len(text), maxName), "shorten it")
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
