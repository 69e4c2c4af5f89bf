//go:build integration

package proof

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/entail-dev/entail/services/entail/internal/command"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// createTeamNamespace creates a namespace with two roles, a binding and a rule, and returns its name.
func createTeamNamespace(t *testing.T, k *testenv.KubeServer) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(k.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}, metav1.CreateOptions{})
	must(err)
	t.Cleanup(func() {
		_ = client.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), ns.Name, metav1.DeleteOptions{})
	})
	for _, name := range []string{"writer", "reader"} {
		_, err = client.RbacV1().Roles(ns.Name).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(err)
	}
	_, err = client.RbacV1().RoleBindings(ns.Name).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "alice-writes"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "writer"},
	}, metav1.CreateOptions{})
	must(err)
	rule := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kinds.ImpliedRoles().GroupVersionResource().GroupVersion().String(), "kind": "ImpliedRoles", "metadata": map[string]any{"name": "writer-reader"},
		"spec": map[string]any{"inference_rule": map[string]any{"parent_role": "writer", "child_role": "reader"}},
	}}
	_, err = k.DynamicClient(t).Resource(kinds.ImpliedRoles().GroupVersionResource()).Namespace(ns.Name).Create(t.Context(), rule, metav1.CreateOptions{})
	must(err)
	return ns.Name
}

// kubeconfigOf returns a kubeconfig of the server for a user in a namespace.
func kubeconfigOf(t *testing.T, k *testenv.KubeServer, namespace, person string) string {
	t.Helper()
	cfg, file := k.AdminConfig(), filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "it",
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it", Namespace: namespace}},
		Clusters: map[string]*clientcmdapi.Cluster{"it": {
			Server: cfg.Host, CertificateAuthority: cfg.CAFile, CertificateAuthorityData: cfg.CAData, TLSServerName: cfg.ServerName,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {
			ClientCertificate: cfg.CertFile, ClientCertificateData: cfg.CertData, ClientKey: cfg.KeyFile, ClientKeyData: cfg.KeyData,
			Token: cfg.BearerToken, Impersonate: person,
		}},
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// shellCompletions returns the completions that a shell would offer.
func shellCompletions(t *testing.T, kubeconfig string, typed ...string) []string {
	t.Helper()
	var out strings.Builder
	command.Run(t.Context(), append([]string{"__complete"}, typed...), command.IOStreams{
		In: strings.NewReader(""), Out: &out, Err: io.Discard,
		Getenv: func(name string) string { return map[string]string{"KUBECONFIG": kubeconfig}[name] },
	})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[:len(lines)-1] // The last line is a directive for the shell.
}

func TestCompletionOffersExistingObjects(t *testing.T) {
	k := testenv.StartKube(t)
	ns := createTeamNamespace(t, k)
	admin, nobody := kubeconfigOf(t, k, ns, ""), kubeconfigOf(t, k, ns, "nobody")
	for line, want := range map[string]string{
		"who-has wr":                               "writer",
		"who-has clusterrole/vi":                   "clusterrole/view",
		"who-has writer re":                        "",
		"explain role re":                          "reader",
		"explain role --namespace kube-public re":  "",
		"explain rolebinding ":                     "alice-writes",
		"preview binding al":                       "alice-writes",
		"preview binding x --role re":              "reader",
		"preview rules --remove ":                  "writer-reader",
		"inferences -n " + ns[:len(ns)-1]:          ns,
		"trace role/x -n " + ns[:len(ns)-1]:        ns,
		"trace rolebinding/al":                     "rolebinding/alice-writes",
		"replay clusterrole/vi":                    "clusterrole/view",
		"explain role writer --for ":               "group: serviceaccount: user:",
		"what-has ":                                "group: serviceaccount: user:",
		"inferences watch --namespace kube-public": "kube-public",
	} {
		got := shellCompletions(t, admin, strings.Split(line, " ")...)
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: offers %q, want %q", line, got, want)
		}
		if got := shellCompletions(t, nobody, strings.Split(line, " ")...); want != "group: serviceaccount: user:" && len(got) > 0 {
			t.Errorf("%s: offers %q to somebody who may read nothing", line, got)
		}
	}
	if got := shellCompletions(t, admin, "who-has", ""); !slices.Contains(got, "reader") || !slices.Contains(got, "clusterrole/edit") {
		t.Errorf("roles are %q", got)
	}
}
