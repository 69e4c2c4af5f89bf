package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
	querypolicy "github.com/entail-dev/entail/services/store-sync/internal/query/policy"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	policyplan "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// coreModule stands for the Store's own module where an AuthorizationModel can be named.
const coreModule = "-"

// previewed is where a module comes from that nobody has declared.
const previewed = "preview"

// PreviewModel merges as store-sync would and writes nothing.
func (s *Server) PreviewModel(ctx context.Context, request *storev1.PreviewModelRequest) (*storev1.PreviewModelResponse, error) {
	found, err := s.find(request.GetName())
	if err != nil {
		return nil, err
	}
	in := s.snapshot(found)
	var p proposal
	if request.GetDocuments() != nil {
		p, err = s.propose(ctx, request, found, in)
	} else {
		p.core, p.others = plan.Sources(in)
		err = p.place(request)
	}
	if err != nil {
		return nil, err
	}
	merged, mergeErr := s.merges.Preview(p.core, p.others)
	response := p.judge(merged)
	if mergeErr != nil { // That is the answer.
		response.Accepted, response.Message = false, mergeErr.Error()
		return response, nil //nolint:nilerr // As said.
	}
	if response.Dsl, err = model.DSL(merged.Model); err != nil {
		return nil, err
	}
	desired, err := s.merges.Merge(in)
	if err != nil {
		desired.Model = nil // The Store's own module is broken: everything is new.
	}
	response.Changes, err = changes(desired.Model, merged.Model)
	return response, err
}

// proposal is what a model would be made of.
type proposal struct {
	core   model.Module
	others []model.Module
	// origins are where the modules come from that are previewed.
	origins []model.Origin
	// findings are what is wrong with documents, or the first of all errors.
	findings policy.Diagnostics
	errors   int
}

// judge tells what became of the modules.
func (p *proposal) judge(merged model.Result) *storev1.PreviewModelResponse {
	response := &storev1.PreviewModelResponse{Accepted: true}
	if p.errors > 0 {
		response.Accepted, response.Message = false, fmt.Sprintf("errors in the documents: %d", p.errors)
		response.Findings = querypolicy.Findings(p.findings)
		response.Findings.Total, response.Findings.Truncated = int32(p.errors), p.errors > len(response.GetFindings().GetDiagnostics())
	}
	for _, r := range merged.Reports {
		response.Modules = append(response.Modules, &storev1.Module{
			Name: r.Module, Source: r.Origin.String(), State: string(r.State), Message: r.Message,
		})
		if slices.Contains(p.origins, r.Origin) {
			response.Accepted = response.GetAccepted() && (r.State == model.Merged || r.State == model.Duplicate)
			response.Message = cmp.Or(response.GetMessage(), r.Message)
		}
	}
	return response
}

// place puts the module that is previewed among the others.
func (p *proposal) place(request *storev1.PreviewModelRequest) error {
	switch name := request.GetReplaces(); name {
	case "":
		m := model.Module{Origin: model.Origin{Kind: model.AuthorizationModel, Scope: previewed}, DSL: request.GetModule(), Created: time.Now()}
		p.others, p.origins = append(p.others, m), []model.Origin{m.Origin}
	case coreModule:
		p.core.DSL, p.origins = request.GetModule(), []model.Origin{p.core.Origin}
	default:
		i := slices.IndexFunc(p.others, func(m model.Module) bool {
			return m.Origin.Kind == model.AuthorizationModel && m.Origin.Name == name
		})
		if i < 0 {
			return rpc.NotFound("no AuthorizationModel %q refers to Store %q", name, request.GetName())
		}
		was := p.others[i]
		p.others[i] = model.Module{Origin: was.Origin, DSL: request.GetModule(), Live: was.Live, Created: was.Created}
		p.origins = []model.Origin{was.Origin}
	}
	return nil
}

// propose registers documents, in the mind only.
func (s *Server) propose(ctx context.Context, request *storev1.PreviewModelRequest, found module.Store, in plan.Input) (p proposal, err error) {
	giveBack, err := s.turns.Take(ctx)
	if err != nil {
		return p, err
	}
	defer giveBack()
	documents, unreadable := querypolicy.Documents(request.GetDocuments().GetFiles())
	if unreadable.HasErrors() {
		p.core, p.others = plan.Sources(in)
		p.findings, p.errors = unreadable, len(unreadable)
		return p, nil
	}
	if name := request.GetReplaces(); name != "" && !s.policies.Registered(found.Key, name) {
		return p, rpc.NotFound("no PolicyDocument %q refers to Store %q", name, request.GetName())
	}
	objects := objectsOf(documents, cmp.Or(request.GetReplaces(), previewed+"/documents"))
	todo := s.policies.Preview(found.Key, objects)
	p.core, p.others = plan.Sources(in.After(todo.Plan, metav1.Now()))
	for _, o := range objects {
		p.origins = append(p.origins, plan.DocumentOrigin(o.Name))
		v := todo.Validations[o.Name]
		p.errors += v.Errors
		for _, f := range v.Findings[:min(v.Errors, policyplan.MaxFindings)] {
			p.findings = append(p.findings, policy.Diagnostic{
				Place: policy.Place{File: "policydocument/" + o.Name, Path: f.Path},
				Code:  policy.Code(f.Code), Severity: policy.Error, Message: f.Message, Hint: f.Hint,
			})
		}
	}
	return p, nil
}

// objectsOf are the PolicyDocuments that documents would be: manifests those that they name, all others one of the given name.
func objectsOf(documents []*syntax.Document, name string) []policyplan.Document {
	by := map[string][]*syntax.Document{}
	var names []string
	for _, d := range documents {
		object := cmp.Or(d.Object, name)
		if by[object] == nil {
			names = append(names, object)
		}
		by[object] = append(by[object], d)
	}
	objects := make([]policyplan.Document, len(names))
	for i, name := range names {
		objects[i] = policyplan.Document{Name: name, Present: policyplan.Object(by[name]...), Created: time.Now()}
	}
	return objects
}
