package plan

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Meta is what is read of an object's metadata.
type Meta struct {
	Name              string            `json:"name"`
	Labels            map[string]string `json:"labels,omitempty"`
	Finalizers        []string          `json:"finalizers,omitempty"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp,omitempty"`
}

// Names are those of a resource.
type Names struct {
	Plural   string `json:"plural"`
	Singular string `json:"singular"`
	Kind     string `json:"kind"`
}

// Spec is what describes a resource.
type Spec struct {
	Group string `json:"group"`
	Names Names  `json:"names"`
	Scope string `json:"scope"`
}

// Resource is the one described.
func (s Spec) Resource() Resource {
	singular := cmp.Or(s.Names.Singular, strings.ToLower(s.Names.Kind))
	return Resource{Group: s.Group, Plural: s.Names.Plural, Singular: singular, Namespaced: s.Scope == "Namespaced"}
}

// Definition is what is read of a CustomResourceDefinition.
type Definition struct {
	Meta `json:"metadata"`

	Spec struct {
		Spec

		Versions []Version `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Version is one version of a definition.
type Version struct {
	Name   string `json:"name"`
	Served bool   `json:"served"`
}

// Serves reports whether the API server says that it serves a version of the resource.
func (d *Definition) Serves(version string) bool {
	established := slices.ContainsFunc(d.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "Established" && c.Status == metav1.ConditionTrue
	})
	return established && d.DeletionTimestamp == nil && slices.Contains(d.Spec.Versions, Version{Name: version, Served: true})
}

// Schema is what is read of a kcp APIResourceSchema.
type Schema struct {
	Meta `json:"metadata"`

	Spec Spec `json:"spec"`
}

// Export is what is read of a kcp APIExport, of v1alpha1 or v1alpha2.
type Export struct {
	Meta `json:"metadata"`

	Spec struct {
		Latest    []string `json:"latestResourceSchemas"`
		Resources []struct {
			Schema string `json:"schema"`
		} `json:"resources"`
	} `json:"spec"`
}

// Schemas are the names of its APIResourceSchemas, each once.
func (e *Export) Schemas() []string {
	names := slices.Clone(e.Spec.Latest)
	for _, r := range e.Spec.Resources {
		names = append(names, r.Schema)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Binding is what is read of a kcp APIBinding.
type Binding struct {
	Meta `json:"metadata"`

	Spec struct {
		Reference struct {
			Export struct {
				Name string `json:"name"`
			} `json:"export"`
		} `json:"reference"`
	} `json:"spec"`
	Status struct {
		// ExportCluster is the logical cluster of the APIExport, once the binding is bound.
		ExportCluster string `json:"apiExportClusterName"`
	} `json:"status"`
}

// ExportName is the name of the APIExport that it binds.
func (b *Binding) ExportName() string { return b.Spec.Reference.Export.Name }

// Ignored reports whether the binding is of an API that models say nothing about: the platform's own and kcp's.
func (b *Binding) Ignored() bool {
	name := b.ExportName()
	return name == "core.platform-mesh.io" || name == "system.platform-mesh.io" || strings.HasSuffix(name, "kcp.io")
}

// Held reports whether the finalizer belongs on the binding.
func (b *Binding) Held() bool {
	return !b.Ignored() && !strings.Contains(b.Name, "platform-mesh.io") && !strings.Contains(b.Name, "kcp.io")
}
