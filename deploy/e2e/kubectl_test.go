//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// kubectl runs kubectl, and returns its output and exit code.
func (m *machine) kubectl(t *testing.T, args ...string) (said string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "kubectl"), append([]string{"--kubeconfig", m.Kubeconfig}, args...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: run `make kubectl`", err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// people runs kubectl as several users. Alice may list and get projects, execute in pods and watch ConfigMaps. Group
// oidc:staff may list projects.
func people(t *testing.T, m *machine) {
	t.Helper()
	const projects = "projects." + resourceManager
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"--as alice get " + projects:                                                  {0, ""},
		"--as alice get " + projects + " none":                                        {1, "NotFound"},
		"--as alice get " + projects + " --field-selector metadata.name=none":         {0, ""},
		"--as alice delete " + projects + " none":                                     {1, `missing permission "` + resourceManager + `/projects.delete"`},
		"--as alice get organizations." + resourceManager:                             {1, `missing permission "` + resourceManager + `/organizations.list"`},
		"--as alice get --raw /metrics":                                               {1, "Forbidden"},
		"--as alice auth can-i list " + projects:                                      {0, "yes"},
		"--as alice auth can-i delete " + projects:                                    {1, "no - missing permission"},
		"--as alice auth can-i create pods --subresource exec":                        {0, "yes"},
		"--as alice auth can-i create pods --subresource attach":                      {1, "no - not protected by Entail: no ProtectedResource registers permission 'core.miloapis.com/pods/attach.create'"},
		"--as alice auth can-i create pods":                                           {1, "no"},
		"--as alice auth can-i * *":                                                   {1, "no"},
		"--as alice auth can-i get /metrics":                                          {1, "no"},
		"--as alice auth can-i --list":                                                {0, "incomplete"},
		"--as bob --as-group oidc:staff get " + projects:                              {0, ""},
		"--as bob --as-group oidc:staff --as-group oidc:other auth can-i list pods":   {1, "no"},
		"--as bob --as-group staff get " + projects:                                   {1, "missing permission"},
		"--as bob --as-uid alice get " + projects:                                     {0, ""},
		"--as alice --as-uid bob get " + projects:                                     {1, "missing permission"},
		"--as bob get " + projects:                                                    {1, "missing permission"},
		"--as system:serviceaccount:default:default auth can-i list " + projects:      {1, "no"},
		"--as system:anonymous --as-group system:unauthenticated get " + projects:     {1, "orbidden"},
		"--as alice --as-group system:masters auth can-i delete " + projects:          {0, "yes"}, // The API server decides this itself.
		"--as alice -n default create token default":                                  {1, "not protected by Entail"},
		"--as alice -n default auth can-i create serviceaccounts --subresource token": {1, "not protected by Entail"},
	} {
		if said, code := m.kubectl(t, strings.Fields(args)...); code != want.code || !strings.Contains(said, want.says) {
			t.Errorf("kubectl %s ends with %d, and says %s", args, code, said)
		}
	}
}

// programs uses client-go, as alice and as service accounts with tokens.
func programs(t *testing.T, m *machine) {
	t.Helper()
	projects := schema.GroupVersionResource{Group: resourceManager, Version: "v1alpha1", Resource: "projects"}
	lists := func(who string, cfg *rest.Config, want bool) {
		t.Helper()
		objects, err := dynamic.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := objects.Resource(projects).List(t.Context(), metav1.ListOptions{}); (err == nil) != want {
			t.Errorf("%s lists projects: %v", who, err)
		}
	}
	alice := rest.CopyConfig(m.config(t))
	alice.Impersonate = rest.ImpersonationConfig{UserName: "alice"}
	lists("alice", alice, true)
	clients, err := kubernetes.NewForConfig(alice)
	if err != nil {
		t.Fatal(err)
	}
	maps := clients.CoreV1().ConfigMaps("default")
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Errorf("alice watches ConfigMaps: %v", err)
	} else {
		watch.Stop()
	}
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("alice lists ConfigMaps")
	}
	one := metav1.ListOptions{FieldSelector: "metadata.name=none"}
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, one); err != nil {
		t.Errorf("alice deletes a collection: %v", err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{}
	review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: "list", Group: resourceManager, Resource: "projects"}
	review, err = clients.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil || !review.Status.Allowed || !strings.Contains(review.Status.Reason, "PolicyBinding") {
		t.Errorf("alice asks about herself, and is told %+v, %v", review, err)
	}
	admin, err := kubernetes.NewForConfig(m.config(t))
	if err != nil {
		t.Fatal(err)
	}
	for account, want := range map[string]bool{"default": true, "another": false} {
		accounts := admin.CoreV1().ServiceAccounts("default")
		if !want {
			another := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
			if _, err := accounts.Create(t.Context(), another, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		token, err := accounts.CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cfg := rest.AnonymousClientConfig(m.config(t))
		cfg.BearerToken = token.Status.Token
		lists(fmt.Sprintf("the account %s, by its token,", account), cfg, want)
	}
}
