package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/entail-dev/entail/services/internal/rbac"
)

// container is a container in docker-compose.yaml.
type container struct {
	Image    string   `json:"image"`
	Command  []string `json:"command"`
	ReadOnly bool     `json:"read_only"`
	CapDrop  []string `json:"cap_drop"`
	Volumes  []any    `json:"volumes"`
	Profiles []string `json:"profiles"`
	Ports    []string `json:"ports"`
	Networks map[string]struct {
		Aliases []string `json:"aliases"`
	} `json:"networks"`
}

// mounts returns the volume paths that the container mounts.
func (c container) mounts() (all []string) {
	for _, v := range c.Volumes {
		mount, _ := v.(map[string]any)
		volume, _ := mount["volume"].(map[string]any)
		part, _ := volume["subpath"].(string)
		all = append(all, part)
	}
	return all
}

func TestComposeFileGivesEachServiceItsCredentials(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "../docker-compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]container `json:"services"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	scraped, err := os.ReadFile(filepath.Join(root, "../deploy/docker/prometheus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range rbac.ServiceAccounts() {
		name := account.Service
		if !strings.Contains(string(scraped), "- "+name+"\n") {
			t.Errorf("%s is not scraped", name)
		}
		c := file.Services[name]
		if !strings.HasPrefix(c.Image, "entail/"+name+":") || !c.ReadOnly || !slices.Equal(c.CapDrop, []string{"ALL"}) {
			t.Errorf("%s is %+v", name, c)
		}
		for _, part := range c.mounts() {
			if part != name+".kubeconfig" && part != "nats-"+name && part != "openfga-client" {
				t.Errorf("%s sees %s", name, part)
			}
		}
		if !slices.Contains(c.mounts(), name+".kubeconfig") || !slices.Contains(c.mounts(), "nats-"+name) {
			t.Errorf("%s sees %q only", name, c.mounts())
		}
		if s := file.Services[name+"-standby"]; !slices.Equal(s.mounts(), c.mounts()) || s.Image != c.Image || len(s.Ports) > 0 ||
			!slices.Equal(s.Profiles, []string{"ha"}) || !slices.Contains(s.Networks["default"].Aliases, name) {
			t.Errorf("who stands by for %s is %+v", name, s)
		}
		if user := "--user=system:serviceaccount:entail-system:" + name; !slices.Contains(file.Services["kubernetes"].Command, user) {
			t.Errorf("the API server gives %s no kubeconfig", name)
		}
	}
}
