package testenv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/topology"
)

// line returns a line of the audit log.
func line(user, verb, decision string, code int, object string) string {
	return fmt.Sprintf(`{"verb":%q,"user":{"username":%q},"objectRef":{%s},"responseStatus":{"code":%d},"annotations":{"authorization.k8s.io/decision":%q}}`+"\n",
		verb, user, object, code, decision)
}

func TestAuditFindsUnusedRights(t *testing.T) {
	const (
		self   = "system:serviceaccount:entail-system:store-sync"
		secret = `"resource":"secrets","namespace":"entail-system","name":"entail-store-sync-admission"`
		stores = `"apiGroup":"core.platform-mesh.io","resource":"stores","name":"demo"`
		status = `"apiGroup":"core.platform-mesh.io","resource":"stores","subresource":"status","name":"demo"`
	)
	for name, c := range map[string]struct {
		line string
		used []string
	}{
		"a request uses its right":                  {line(self, "get", "allow", 200, stores), []string{"get stores.core.platform-mesh.io"}},
		"a subresource has rights of its own":       {line(self, "patch", "allow", 200, status), []string{"patch stores/status.core.platform-mesh.io"}},
		"a patch that makes an object creates it":   {line(self, "patch", "allow", 201, secret), []string{"patch secrets", "create secrets"}},
		"a patch of an object does not create it":   {line(self, "patch", "allow", 200, secret), []string{"patch secrets"}},
		"a right to one object is for that one":     {line(self, "patch", "allow", 200, strings.Replace(secret, "entail-store-sync", "other", 1)), nil},
		"a right in one namespace is for that one":  {line(self, "patch", "allow", 200, strings.Replace(secret, "entail-system", "other", 1)), nil},
		"another user's request uses no right":      {line("somebody", "get", "allow", 200, stores), nil},
		"a forbidden request uses no right":         {line(self, "get", "forbid", 403, stores), nil},
		"a request without a resource uses nothing": {line(self, "get", "allow", 200, ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			left, err := unusedRightsIn(topology.StoreSync, strings.NewReader(c.line))
			if err != nil {
				t.Fatal(err)
			}
			var used []string
			for _, right := range ServiceRights(topology.StoreSync) {
				if !slices.Contains(left, right) {
					used = append(used, right.String())
				}
			}
			slices.Sort(used)
			slices.Sort(c.used)
			if !slices.Equal(used, c.used) {
				t.Errorf("got %q, want %q", used, c.used)
			}
		})
	}
	if _, err := unusedRightsIn(topology.StoreSync, strings.NewReader(line(self, "get", "allow", 200, stores)+`{"verb":`)); err == nil {
		t.Error("got no error of a log that was cut off")
	}
}
