package reference_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// readCRDs returns the CustomResourceDefinitions of the checkout, by the name of their files.
func readCRDs(root string) ([]apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(root, "deploy/crd/*.yaml"))
	if err != nil {
		return nil, err
	}
	crds := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(data, &crds[i]); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
	}
	return crds, nil
}

// kindsPage returns a page with a table of fields for each kind.
func kindsPage(root string) (string, error) {
	crds, err := readCRDs(root)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("# Custom resources\n\nFields in *italics* are required. `[]` stands for each element of a list, `{}` for each value of a map.\n")
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			writeKind(&out, crd.Spec, version)
		}
	}
	return out.String(), nil
}

func writeKind(out *strings.Builder, crd apiextensionsv1.CustomResourceDefinitionSpec, version apiextensionsv1.CustomResourceDefinitionVersion) {
	names := slices.Concat([]string{crd.Names.Plural}, crd.Names.ShortNames)
	schema := version.Schema.OpenAPIV3Schema
	fmt.Fprintf(out, "\n## %s\n\n`%s/%s`, %s, `kubectl get %s`\n\n%s\n\n", crd.Names.Kind, crd.Group, version.Name, strings.ToLower(string(crd.Scope)),
		strings.Join(names, "`, `"), proseLine(schema.Description))
	out.WriteString("| field | type | what |\n|---|---|---|\n")
	for _, part := range []string{"spec", "status"} {
		if field, ok := schema.Properties[part]; ok {
			writeFields(out, part, field)
		}
	}
}

func writeFields(out *strings.Builder, path string, schema apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		where, label := path+"."+name, "`"+path+"."+name+"`"
		if slices.Contains(schema.Required, name) {
			label = "*" + label + "*"
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", label, typeOf(field), strings.ReplaceAll(proseLine(field.Description), "|", `\|`))
		writeInner(out, where, field)
	}
}

// writeInner writes the fields inside of lists and maps.
func writeInner(out *strings.Builder, path string, field apiextensionsv1.JSONSchemaProps) {
	for {
		switch {
		case field.Items != nil && field.Items.Schema != nil:
			path, field = path+"[]", *field.Items.Schema
		case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
			path, field = path+"{}", *field.AdditionalProperties.Schema
		default:
			writeFields(out, path, field)
			return
		}
	}
}

func typeOf(field apiextensionsv1.JSONSchemaProps) string {
	switch {
	case len(field.Enum) > 0:
		var values []string
		for _, value := range field.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		return strings.Join(values, ", ")
	case field.Items != nil && field.Items.Schema != nil:
		return "list of " + typeOf(*field.Items.Schema)
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(*field.AdditionalProperties.Schema)
	case field.Format == "date-time":
		return "time"
	}
	return field.Type
}

// proseLine returns a description as one line.
func proseLine(text string) string { return strings.Join(strings.Fields(text), " ") }
