package openfga

import (
	"cmp"
	"fmt"
)

// Options holds settings for an installation of OpenFGA. Zero fields mean defaults.
type Options struct {
	// MaxTypes bounds the types of the model. The default is 100, as in OpenFGA; a negative value means no limit.
	MaxTypes int
	// MaxBytes bounds the model in protobuf. The default is 256 KiB, as in OpenFGA; a negative value means no limit.
	MaxBytes int
	// CoreModule is the name of the module with the types of roles and subjects that no document declares. The default
	// is "core".
	CoreModule string
	// ExternalTypes holds undeclared types that are defined outside of the policy, so that no module defines them. Only
	// [CompileModules] uses it.
	ExternalTypes []string
	// SchemaVersion is the schema version of [CompileDSL] and [CompileJSON]: "1.1", the default, or "1.2". [CompileModules] always uses 1.2.
	SchemaVersion string
}

// OrDefault returns the options with all defaults filled in.
func (o Options) OrDefault() Options {
	return Options{
		MaxTypes: cmp.Or(o.MaxTypes, 100), MaxBytes: cmp.Or(o.MaxBytes, 256<<10),
		CoreModule: cmp.Or(o.CoreModule, "core"), SchemaVersion: cmp.Or(o.SchemaVersion, "1.1"),
		ExternalTypes: o.ExternalTypes,
	}
}

// Validate returns an error that names the invalid option.
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
