package openfga

import (
	"cmp"
	"fmt"
)

// Options are the choices of who runs OpenFGA. Zero fields are defaults.
type Options struct {
	// MaxTypes of the model, 100 by default as in OpenFGA; negative is without limit.
	MaxTypes int
	// MaxBytes of the model in protobuf, 256 KiB by default as in OpenFGA; negative is without limit.
	MaxBytes int
	// CoreModule has the types of roles and subjects that no document declares, "core" by default.
	CoreModule string
	// ExternalTypes are types of subjects that something else defines: no module does. They matter to Modules only.
	ExternalTypes []string
	// SchemaVersion of DSL and JSON, "1.1" by default, or "1.2"; modules have the latter.
	SchemaVersion string
}

// OrDefault returns the options with every default filled in.
func (o Options) OrDefault() Options {
	return Options{
		MaxTypes: cmp.Or(o.MaxTypes, 100), MaxBytes: cmp.Or(o.MaxBytes, 256<<10),
		CoreModule: cmp.Or(o.CoreModule, "core"), SchemaVersion: cmp.Or(o.SchemaVersion, "1.1"),
		ExternalTypes: o.ExternalTypes,
	}
}

// Validate returns an error that says which option cannot be.
func (o Options) Validate() error {
	o = o.OrDefault()
	if o.SchemaVersion != "1.1" && o.SchemaVersion != "1.2" {
		return fmt.Errorf("schema version %.64q: use 1.1 or 1.2", o.SchemaVersion)
	}
	if !isModuleName(o.CoreModule) {
		return fmt.Errorf("core module %.64q: use at most %d letters, digits, underscores and dashes, first a letter", o.CoreModule, maxModuleName)
	}
	return nil
}
