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
	"github.com/entail-dev/entail/services/internal/nearest"
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
	found, err := s.findStore(ctx, request.GetName())
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	in := s.storeSnapshot(found)
	p := previewProposal{in: in}
	if request.GetDocuments() != nil {
		err = s.addPreviewDocuments(&p, request, found)
	} else {
		err = p.addOrReplaceModule(request)
	}
	if err != nil {
		return nil, err
	}
	limits := s.merges.Limits()
	before, was := plan.DecideModel(in, s.policies.RegisteredDocuments(found.Key), limits)
	after, todo := plan.DecideModel(p.in, s.policies.RegisteredDocuments(found.Key, p.documents...), limits)
	response := p.buildResponse(after.Merged, was, todo)
	if after.MergeErr != nil {
		response.Accepted, response.Message = false, after.MergeErr.Error()
		return response, nil
	}
	if response.Dsl, err = model.RenderDSL(after.Merged.Model); err != nil {
		return nil, err
	}
	// If the Store's core module is broken, no model exists before, and every definition counts as new.
	if response.Changes, err = diffToProto(before.Merged.Model, after.Merged.Model); err != nil {
		return nil, err
	}
	return response, addLostDefinitionsAndTuples(response, before, after.Merged.Model)
}

// previewProposal holds the modules and documents of the previewed model.
type previewProposal struct {
	in        plan.Input
	documents []policyplan.Document
	// origins are the sources of the previewed modules.
	origins []model.ModuleOrigin
	// findings are the errors in documents that cannot be read.
	findings policy.Diagnostics
}

// buildResponse returns the states of the modules, and of the documents that would become invalid.
func (p *previewProposal) buildResponse(merged model.MergeResult, was, todo policyplan.Plan) *storev1.PreviewModelResponse {
	response := &storev1.PreviewModelResponse{Accepted: true}
	if findings, errors := p.documentErrors(todo); errors > 0 {
		response.Accepted, response.Message = false, fmt.Sprintf("errors in the documents: %d", errors)
		response.Findings = querypolicy.FindingsToProto(findings)
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
			response.Modules = addInvalidDocument(response.GetModules(), name, v)
		}
	}
	return response
}

// addInvalidDocument adds a document that would have findings to the list of modules.
func addInvalidDocument(modules []*storev1.Module, document string, v policyplan.DocumentValidation) []*storev1.Module {
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
func (p *previewProposal) documentErrors(todo policyplan.Plan) (found policy.Diagnostics, errors int) {
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

// addOrReplaceModule adds the previewed module to the others, or replaces the module that the request names.
func (p *previewProposal) addOrReplaceModule(request *storev1.PreviewModelRequest) error {
	at := func(name string) int {
		return slices.IndexFunc(p.in.Modules, func(m plan.ModelObject) bool { return m.Key == p.modelObjectKey(name) && !m.IsFromDocument() })
	}
	p.in.Modules = slices.Clone(p.in.Modules)
	switch name := request.GetReplaces(); name {
	case "":
		for name = previewed; at(name) >= 0; {
			name += "-" // No object has such a name.
		}
		value := &corev1alpha1.AuthorizationModel{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Now()}}
		value.Spec.Model = request.GetModule()
		p.in.Modules = append(p.in.Modules, plan.ModelObject{Change: event.Change{Key: p.modelObjectKey(name)}, Value: value})
		p.origins = []model.ModuleOrigin{{Kind: model.AuthorizationModel, Name: name}}
	case coreModule:
		p.in.Store = p.in.Store.DeepCopy()
		p.in.Store.Spec.CoreModule, p.origins = request.GetModule(), []model.ModuleOrigin{{Kind: model.Core}}
	default:
		i := at(name)
		if i < 0 {
			var known []string
			for _, m := range p.in.Modules {
				if !m.IsFromDocument() {
					known = append(known, m.Key.Name)
				}
			}
			return rpc.NotFoundError("no AuthorizationModel %q refers to Store %q%s", name, request.GetName(), nearest.Hint(name, "AuthorizationModels", known))
		}
		value := p.in.Modules[i].Value.DeepCopy()
		value.Spec.Model, value.Annotations = request.GetModule(), nil
		p.in.Modules[i].Value, p.origins = value, []model.ModuleOrigin{{Kind: model.AuthorizationModel, Name: name}}
	}
	return nil
}

// modelObjectKey returns the key of an AuthorizationModel in the cluster of the Store.
func (p *previewProposal) modelObjectKey(name string) event.Key {
	return event.Key{Cluster: p.in.Key.Cluster, GroupResource: kinds.AuthorizationModels().GroupResource, Name: name}
}

// addPreviewDocuments adds the documents of a request to the proposal. It registers nothing.
func (s *Server) addPreviewDocuments(p *previewProposal, request *storev1.PreviewModelRequest, found module.StoreObject) error {
	documents, unreadable := querypolicy.ParseDocuments(request.GetDocuments().GetFiles())
	if unreadable.HasErrors() {
		p.findings = unreadable
		return nil
	}
	registered := s.policies.RegisteredDocuments(found.Key)
	name := request.GetReplaces()
	if name != "" && !slices.ContainsFunc(registered, func(d policyplan.Document) bool { return d.Name == name }) {
		var known []string
		for _, d := range registered {
			known = append(known, d.Name)
		}
		return rpc.NotFoundError("no PolicyDocument %q refers to Store %q%s", name, request.GetName(), nearest.Hint(name, "PolicyDocuments", known))
	}
	p.documents = groupDocumentsByObject(documents, cmp.Or(name, previewed+"/documents"))
	for _, o := range p.documents {
		p.origins = append(p.origins, plan.DocumentOrigin(o.Name))
	}
	return nil
}

// groupDocumentsByObject groups documents into PolicyDocuments. A manifest becomes the object that it names; all other documents
// together become one object with the given name.
func groupDocumentsByObject(documents []*syntax.Document, name string) []policyplan.Document {
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
		objects[i] = policyplan.Document{Name: name, Present: policyplan.JoinDocuments(by[name]...), Created: time.Now()}
	}
	return objects
}
