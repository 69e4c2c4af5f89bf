package plan

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Meta holds the metadata that this package reads.
type Meta struct {
	Name              string            `json:"name"`
	Labels            map[string]string `json:"labels,omitempty"`
	Finalizers        []string          `json:"finalizers,omitempty"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp,omitempty"`
}

// ResourceNames are the names of a resource.
type ResourceNames struct {
	Plural   string `json:"plural"`
	Singular string `json:"singular"`
	Kind     string `json:"kind"`
}

// Spec describes a resource.
type Spec struct {
	Group string        `json:"group"`
	Names ResourceNames `json:"names"`
	Scope string        `json:"scope"`
}

// Resource returns the resource that s describes.
func (s Spec) Resource() APIResource {
	singular := cmp.Or(s.Names.Singular, strings.ToLower(s.Names.Kind))
	return APIResource{Group: s.Group, Plural: s.Names.Plural, Singular: singular, Namespaced: s.Scope == "Namespaced"}
}

// ResourceDefinition holds the fields of a CustomResourceDefinition that this package reads.
type ResourceDefinition struct {
	Meta `json:"metadata"`

	Spec struct {
		Spec

		Versions []DefinitionVersion `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// DefinitionVersion is one version of a definition.
type DefinitionVersion struct {
	Name   string `json:"name"`
	Served bool   `json:"served"`
}

// IsServed reports whether the API server serves a version of the resource: the definition is established and not in
// deletion.
func (d *ResourceDefinition) IsServed(version string) bool {
	established := slices.ContainsFunc(d.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "Established" && c.Status == metav1.ConditionTrue
	})
	return established && d.DeletionTimestamp == nil && slices.Contains(d.Spec.Versions, DefinitionVersion{Name: version, Served: true})
}

// ResourceSchema holds the fields of a kcp APIResourceSchema that this package reads.
type ResourceSchema struct {
	Meta `json:"metadata"`

	Spec Spec `json:"spec"`
}

// APIExport holds the fields of a kcp APIExport that this package reads, of v1alpha1 or v1alpha2.
type APIExport struct {
	Meta `json:"metadata"`

	Spec struct {
		Latest    []string `json:"latestResourceSchemas"`
		Resources []struct {
			Schema string `json:"schema"`
		} `json:"resources"`
	} `json:"spec"`
}

// SchemaNames returns the sorted names of the export's APIResourceSchemas, each once.
func (e *APIExport) SchemaNames() []string {
	names := slices.Clone(e.Spec.Latest)
	for _, r := range e.Spec.Resources {
		names = append(names, r.Schema)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// APIBinding holds the fields of a kcp APIBinding that this package reads.
type APIBinding struct {
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

// ExportName returns the name of the APIExport that the binding binds.
func (b *APIBinding) ExportName() string { return b.Spec.Reference.Export.Name }

// IsPlatformBinding reports whether models leave out the API of the binding. They leave out APIs of the platform and of kcp.
func (b *APIBinding) IsPlatformBinding() bool {
	name := b.ExportName()
	return name == "core.platform-mesh.io" || name == "system.platform-mesh.io" || strings.HasSuffix(name, "kcp.io")
}

// NeedsFinalizer reports whether the binding must carry the finalizer.
func (b *APIBinding) NeedsFinalizer() bool {
	return !b.IsPlatformBinding() && !strings.Contains(b.Name, "platform-mesh.io") && !strings.Contains(b.Name, "kcp.io")
}
