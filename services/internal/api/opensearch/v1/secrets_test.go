package v1

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestSecretNamesListsReadSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		resource, object string
		want             []string
	}{
		"a user":              {Users, `{"spec":{"passwordFrom":{"name":"p","key":"k"}}}`, []string{"p"}},
		"a user without one":  {Users, `{"spec":{}}`, nil},
		"a role":              {Roles, `{"spec":{"passwordFrom":{"name":"p"}}}`, nil},
		"an annotation":       {Clusters, `{"metadata":{"annotations":{"entail.dev/connection-secret":"c"}},"spec":{"connection":{"caSecret":{"name":"a"}}}}`, []string{"c"}},
		"a connection":        {Clusters, `{"spec":{"connection":{"clientCertificateSecret":{"name":"b"},"adminCredentialsSecret":{"name":"c"},"caSecret":{"name":"a"}}}}`, []string{"a", "b", "c"}},
		"one for all":         {Clusters, `{"spec":{"connection":{"clientCertificateSecret":{"name":"a"},"caSecret":{"name":"a"}}}}`, []string{"a"}},
		"a bare connection":   {Clusters, `{"spec":{"connection":{"url":"https://x"}},"status":{"phase":"RUNNING"}}`, nil},
		"one that starts":     {Clusters, `{"metadata":{"name":"x"},"status":{"phase":"PENDING"}}`, nil},
		"an operator's":       {Clusters, `{"metadata":{"name":"x"},"status":{"phase":"RUNNING"}}`, []string{"x-admin-password", "x-ca"}},
		"with credentials":    {Clusters, `{"metadata":{"name":"x"},"spec":{"security":{"config":{"adminCredentialsSecret":{"name":"c"}}}},"status":{"phase":"RUNNING"}}`, []string{"c", "x-ca"}},
		"with a certificate":  {Clusters, `{"metadata":{"name":"x"},"spec":{"security":{"config":{"operatorClientCert":{"name":"b"}}}},"status":{"phase":"RUNNING"}}`, []string{"b", "x-ca"}},
		"with its own CA":     {Clusters, `{"metadata":{"name":"x"},"spec":{"security":{"tls":{"http":{"caSecret":{"name":"a"}}}}},"status":{"phase":"RUNNING"}}`, []string{"a", "x-admin-password"}},
		"whose CA it makes":   {Clusters, `{"metadata":{"name":"x"},"spec":{"security":{"tls":{"http":{"generate":true,"caSecret":{"name":"a"}}}}},"status":{"phase":"RUNNING"}}`, []string{"x-admin-password", "x-ca"}},
		"empty references":    {Clusters, `{"spec":{"connection":{"caSecret":{"name":""}}}}`, nil},
		"a kind of elsewhere": {"pods", `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := DecodeSecretNames(c.resource, []byte(c.object)); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("it names %v, %v; want %v", got, err, c.want)
			}
		})
	}
	for _, resource := range ResourcesWithSecrets() {
		if got, err := DecodeSecretNames(resource, []byte(`{"spec":7}`)); err == nil {
			t.Errorf("what is no object of %s names %v", resource, got)
		}
	}
}

// FuzzSecretNames reads objects that a CustomResourceDefinition of other software may allow.
func FuzzSecretNames(f *testing.F) {
	f.Add(`{"metadata":{"name":"x"},"spec":{"security":{"config":{}}},"status":{"phase":"RUNNING"}}`)
	f.Fuzz(func(t *testing.T, object string) {
		for _, resource := range ResourcesWithSecrets() {
			names, err := DecodeSecretNames(resource, []byte(object))
			if err == nil && (!json.Valid([]byte(object)) || slices.Contains(names, "")) {
				t.Errorf("%q names %q", object, names)
			}
		}
	})
}
