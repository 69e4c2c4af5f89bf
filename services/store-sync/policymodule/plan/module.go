package plan

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy/openfga"
)

// rolesModule is the name of the module with the types that no document declares.
const rolesModule = "policy-roles"

// desiredModels returns the AuthorizationModels of a policy. Every document has one, even a document without any part of a
// model. One more holds the types that no document declares.
func (in Input) desiredModels(s *documentSelection) []corev1alpha1.AuthorizationModel {
	p := s.result.policy
	if p == nil {
		return nil
	}
	o := unlimitedOptions()
	o.CoreModule = rolesModule
	for _, t := range s.options.OrDefault().SubjectTypes {
		if in.Defined[t] {
			o.ExternalTypes = append(o.ExternalTypes, t)
		}
	}
	modules, _ := openfga.CompileModules(p, o) // Each trial has checked for every possible error.
	texts := map[string]string{}
	for _, m := range modules {
		file := rolesModule
		if m.Name != rolesModule {
			file = m.Sources[0].File
		}
		texts[file] = string(m.Content)
	}
	var desired []corev1alpha1.AuthorizationModel
	if module := texts[rolesModule]; module != "" {
		desired = append(desired, in.newDocumentModel(corev1alpha1.Roles, module))
	}
	for i, d := range s.documents {
		live := s.result.texts[i]
		if live == nil {
			continue
		}
		o := in.newDocumentModel(d.Name, texts[indexFileName(i)])
		o.Annotations[corev1alpha1.PolicyAnnotation], o.Annotations[corev1alpha1.DocumentUIDAnnotation] = encodePolicy(live), d.UID
		desired = append(desired, o)
	}
	return desired
}

func (in Input) newDocumentModel(document, module string) corev1alpha1.AuthorizationModel {
	return corev1alpha1.AuthorizationModel{
		ObjectMeta: metav1.ObjectMeta{Name: in.modelNameOf(document), Annotations: map[string]string{corev1alpha1.DocumentAnnotation: document}},
		Spec:       corev1alpha1.AuthorizationModelSpec{StoreRef: in.Store, Model: module},
	}
}

// maxName bounds the readable part of a name: the limit of Kubernetes without the prefix and the hash.
const maxName = 253 - len("policydocument.") - len(".0123456789abcdef")

// modelNameOf returns the name of the AuthorizationModel for a document of the Store. The readable part need not be unique;
// the hash is.
func (in Input) modelNameOf(document string) string {
	readable := strings.ReplaceAll(document, "/", ".")
	readable = strings.Trim(readable[:min(len(readable), maxName)], ".-")
	return fmt.Sprintf("policydocument.%s.%s", readable, hashParts(in.Store.Cluster, in.Store.Name, document))
}

func hashParts(parts ...string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join(parts, "\x00"))) // It cannot fail.
	return fmt.Sprintf("%016x", h.Sum64())
}

func encodePolicy(p *iaplv1alpha1.Policy) string {
	data, err := json.Marshal(p)
	if err != nil {
		return "" // It cannot fail: the policy holds only strings and lists.
	}
	return string(data)
}
