package reference_test

import (
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestDescriptionsNameLimitsAndDefaults covers the fields that users write.
func TestDescriptionsNameLimitsAndDefaults(t *testing.T) {
	crds, err := readCRDs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			checked += checkLimits(t, crd.Spec.Names.Kind+".spec", version.Schema.OpenAPIV3Schema.Properties["spec"])
		}
	}
	if checked < 80 {
		t.Errorf("limits and defaults: got %d, want 80", checked)
	}
}

// checkLimits checks the fields of an object, and those inside of them. It returns the number of limits and defaults.
func checkLimits(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) (checked int) {
	t.Helper()
	for name, field := range schema.Properties {
		for _, want := range limitsOf(field) {
			checked++
			if !strings.Contains(field.Description, want) {
				t.Errorf("%s.%s: got %q, want it to name %s", path, name, field.Description, want)
			}
		}
		if field.Items != nil {
			field = *field.Items.Schema
		}
		checked += checkLimits(t, path+"."+name, field)
	}
	return checked
}

// limitsOf returns the limits of a field and of its entries, and its default, as a description names them.
func limitsOf(field apiextensionsv1.JSONSchemaProps) []string {
	var limits []string
	for _, limit := range []*int64{field.MaxItems, field.MaxLength, field.MaxProperties} {
		if limit != nil {
			limits = append(limits, thousands(*limit))
		}
	}
	if field.Items != nil && field.Items.Schema.MaxLength != nil {
		limits = append(limits, thousands(*field.Items.Schema.MaxLength))
	}
	if field.Default != nil {
		if value := strings.Trim(string(field.Default.Raw), `"{}`); value != "" {
			limits = append(limits, value)
		}
	}
	return limits
}

// thousands writes a number with a comma before its last three digits.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	if n < 1000 {
		return text
	}
	return text[:len(text)-3] + "," + text[len(text)-3:]
}
