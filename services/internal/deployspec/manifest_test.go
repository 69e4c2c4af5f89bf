package deployspec

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"text/template"

	"github.com/entail-dev/entail/services/internal/rbac"
)

//go:embed *.tmpl
var templates embed.FS

// GenerateManifests returns all generated files by their paths below deploy.
func GenerateManifests() (map[string][]byte, error) {
	parsed, err := template.ParseFS(templates, "*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("reading templates of manifests: %w", err)
	}
	type data struct {
		Workload
		All                                   []Workload
		Namespace                             string
		QueryPort, AdmissionPort, RequestsMiB int
	}
	files := map[string][]byte{}
	render := func(file, name string, w Workload) error {
		var out bytes.Buffer
		if err := parsed.ExecuteTemplate(&out, name+".tmpl", data{w, Workloads(), rbac.Namespace, QueryPort, AdmissionPort, w.Memory / 8}); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
		files[file] = out.Bytes()
		return nil
	}
	for _, w := range Workloads() {
		for file, name := range map[string]string{"workload.yaml": "workload.yaml", "kustomization.yaml": "service-kustomization.yaml"} {
			if err := render(path.Join("base", w.Service, file), name, w); err != nil {
				return nil, err
			}
		}
	}
	for file, name := range map[string]string{
		"base/kustomization.yaml":             "base-kustomization.yaml",
		"components/httproute/httproute.yaml": "httproute.yaml",
		"components/ingress/ingress.yaml":     "ingress.yaml",
		"components/two-replicas/scale.yaml":  "scale.yaml",
	} {
		if err := render(file, name, Workload{}); err != nil {
			return nil, err
		}
	}
	return files, nil
}
