package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
	querypolicy "github.com/entail-dev/entail/services/store-sync/internal/query/policy"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	policyplan "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// coreModule stands for the Store's own module in place of the name of an AuthorizationModel.
const coreModule = "-"

// previewed is the source of a module that exists only in the request.
const previewed = "preview"

// PreviewModel makes the same decisions as store-sync and writes nothing.
func (s *Server) PreviewModel(ctx context.Context, request *storev1.PreviewModelRequest) (*storev1.PreviewModelResponse, error) {
	found, err := s.findStore(request.GetName())
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	in := s.snapshotOf(found)
	p := proposal{in: in}
	if request.GetDocuments() != nil {
		err = s.addDocuments(&p, request, found)
	} else {
		err = p.placeModule(request)
	}
	if err != nil {
		return nil, err
	}
	limits := s.merges.Limits()
	before, was := plan.Decide(in, s.policies.Registered(found.Key), limits)
	after, todo := plan.Decide(p.in, s.policies.Registered(found.Key, p.documents...), limits)
	response := p.buildResponse(after.Merged, was, todo)
	if after.MergeErr != nil {
		response.Accepted, response.Message = false, after.MergeErr.Error()
		return response, nil
	}
	if response.Dsl, err = model.DSL(after.Merged.Model); err != nil {
		return nil, err
	}
	// If the Store's core module is broken, no model exists before, and every definition counts as new.
	if response.Changes, err = modelChanges(before.Merged.Model, after.Merged.Model); err != nil {
		return nil, err
	}
	return response, addLosses(response, before, after.Merged.Model)
}

// proposal holds the modules and documents of the previewed model.
type proposal struct {
	in        plan.Input
	documents []policyplan.Document
	// origins are the sources of the previewed modules.
	origins []model.Origin
	// findings are the errors in documents that cannot be read.
	findings policy.Diagnostics
}

// buildResponse returns the states of the modules, and of the documents that would become invalid.
func (p *proposal) buildResponse(merged model.Result, was, todo policyplan.Plan) *storev1.PreviewModelResponse {
	response := &storev1.PreviewModelResponse{Accepted: true}
	if findings, errors := p.documentErrors(todo); errors > 0 {
		response.Accepted, response.Message = false, fmt.Sprintf("errors in the documents: %d", errors)
		response.Findings = querypolicy.Findings(findings)
		response.Findings.Total, response.Findings.Truncated = int32(errors), errors > len(response.GetFindings().GetDiagnostics())
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
	for _, name := range slices.Sorted(maps.Keys(todo.Validations)) {
		v := todo.Validations[name]
		if len(v.Findings) > 0 && len(was.Validations[name].Findings) == 0 && !slices.Contains(p.origins, plan.DocumentOrigin(name)) {
			response.Modules = addInvalid(response.GetModules(), name, v)
		}
	}
	return response
}

// addInvalid adds a document that would have findings to the list of modules.
func addInvalid(modules []*storev1.Module, document string, v policyplan.Validation) []*storev1.Module {
	source, f := plan.DocumentOrigin(document).String(), v.Findings[0]
	i := slices.IndexFunc(modules, func(m *storev1.Module) bool { return m.GetSource() == source })
	if i < 0 {
		i, modules = len(modules), append(modules, &storev1.Module{Source: source})
	}
	modules[i].State, modules[i].Message = string(model.Rejected), strings.TrimPrefix(fmt.Sprintf("%s %s %s: %s", f.Path, f.Code, f.Message, f.Hint), " ")
	if v.AuthorizationModel != "" {
		modules[i].State = string(model.LastGoodLive)
	}
	return modules
}

// documentErrors returns the first errors in the previewed documents, and the number of all errors.
func (p *proposal) documentErrors(todo policyplan.Plan) (found policy.Diagnostics, errors int) {
	found, errors = p.findings, len(p.findings)
	for _, o := range p.documents {
		v := todo.Validations[o.Name]
		errors += v.Errors
		for _, f := range v.Findings[:min(v.Errors, policyplan.MaxFindings)] {
			found = append(found, policy.Diagnostic{
				Place: policy.Place{File: "policydocument/" + o.Name, Path: f.Path},
				Code:  policy.Code(f.Code), Severity: policy.Error, Message: f.Message, Hint: f.Hint,
			})
		}
	}
	return found, errors
}

// placeModule adds the previewed module to the others, or replaces the module that the request names.
func (p *proposal) placeModule(request *storev1.PreviewModelRequest) error {
	at := func(name string) int {
		return slices.IndexFunc(p.in.Modules, func(m plan.Module) bool { return m.Key == p.modelKey(name) && !m.IsFromDocument() })
	}
	p.in.Modules = slices.Clone(p.in.Modules)
	switch name := request.GetReplaces(); name {
	case "":
		for name = previewed; at(name) >= 0; {
			name += "-" // No object has such a name.
		}
		value := &corev1alpha1.AuthorizationModel{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Now()}}
		value.Spec.Model = request.GetModule()
		p.in.Modules = append(p.in.Modules, plan.Module{Change: event.Change{Key: p.modelKey(name)}, Value: value})
		p.origins = []model.Origin{{Kind: model.AuthorizationModel, Name: name}}
	case coreModule:
		p.in.Store = p.in.Store.DeepCopy()
		p.in.Store.Spec.CoreModule, p.origins = request.GetModule(), []model.Origin{{Kind: model.Core}}
	default:
		i := at(name)
		if i < 0 {
			return rpc.NotFound("no AuthorizationModel %q refers to Store %q", name, request.GetName())
		}
		value := p.in.Modules[i].Value.DeepCopy()
		value.Spec.Model, value.Annotations = request.GetModule(), nil
		p.in.Modules[i].Value, p.origins = value, []model.Origin{{Kind: model.AuthorizationModel, Name: name}}
	}
	return nil
}

// modelKey returns the key of an AuthorizationModel in the cluster of the Store.
func (p *proposal) modelKey(name string) event.Key {
	return event.Key{Cluster: p.in.Key.Cluster, GroupResource: kinds.AuthorizationModels().GroupResource, Name: name}
}

// addDocuments adds the documents of a request to the proposal. It registers nothing.
func (s *Server) addDocuments(p *proposal, request *storev1.PreviewModelRequest, found module.Store) error {
	documents, unreadable := querypolicy.Documents(request.GetDocuments().GetFiles())
	if unreadable.HasErrors() {
		p.findings = unreadable
		return nil
	}
	registered := s.policies.Registered(found.Key)
	name := request.GetReplaces()
	if name != "" && !slices.ContainsFunc(registered, func(d policyplan.Document) bool { return d.Name == name }) {
		return rpc.NotFound("no PolicyDocument %q refers to Store %q", name, request.GetName())
	}
	p.documents = objectsOf(documents, cmp.Or(name, previewed+"/documents"))
	for _, o := range p.documents {
		p.origins = append(p.origins, plan.DocumentOrigin(o.Name))
	}
	return nil
}

// objectsOf groups documents into PolicyDocuments. A manifest becomes the object that it names; all other documents
// together become one object with the given name.
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
