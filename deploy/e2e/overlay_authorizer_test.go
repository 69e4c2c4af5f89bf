package e2e

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
)

// typed returns the object of a kind and a name.
func typed[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		t.Fatalf("there is no %s %s", kind, name)
	}
	o := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, o); err != nil {
		t.Fatal(err)
	}
	return o
}

const authorizerPort = 8443

// The kubeconfig of the API server names a port on which the webhook listens, and which the network policy opens.
func TestAuthorizerComponentPortMatchesKubeconfig(t *testing.T) {
	objects := built(t, overlayWith(t, "authorizer"))
	pod := pods(t, objects)["webhook"]
	c := pod.Spec.Containers[0]
	if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == authorizerPort && p.Name == "authorizer" }) {
		t.Errorf("webhook has the ports %v", c.Ports)
	}
	service := typed[corev1.Service](t, objects, "Service", "webhook")
	if len(service.Spec.Ports) != 2 || !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == authorizerPort && p.TargetPort.String() == "authorizer"
	}) {
		t.Errorf("the Service has the ports %v", service.Spec.Ports)
	}
	policy := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "webhook-authorizer")
	if p := policy.Spec.Ingress[0].Ports; len(p) != 1 || p[0].Port.IntValue() != authorizerPort || policy.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"] != "webhook" {
		t.Errorf("may be reached: %+v", policy.Spec)
	}
	config, err := clientcmd.LoadFromFile("../authorization/webhook.kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	if server := config.Clusters["entail"].Server; !strings.HasPrefix(server, "https://webhook.entail-system.svc:8443/") {
		t.Errorf("the API server asks %s", server)
	}
}

// Every variable must match a flag. A misspelled one would be ignored, and the webhook would answer no request, or any
// client.
func TestAuthorizerComponentVariablesMatchFlags(t *testing.T) {
	pod := pods(t, built(t, overlayWith(t, "authorizer")))["webhook"]
	c := pod.Spec.Containers[0]
	flags, err := os.ReadFile("../../services/webhook/internal/authorizer/config.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, v := range c.Env {
		name, ours := strings.CutPrefix(v.Name, "ENTAIL_AUTHORIZER_")
		if !ours {
			continue
		}
		files[name] = v.Value
		flag := "authorizer-" + strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if !strings.Contains(string(flags), strconv.Quote(flag)) {
			t.Errorf("--%s is no flag", flag)
		}
	}
	if files["LISTEN"] != ":8443" || len(files) != 4 {
		t.Errorf("settings are %v", files)
	}
	at := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "authorizer" && m.ReadOnly })
	if at < 0 {
		t.Fatal("the certificates are not mounted")
	}
	for name, file := range map[string]string{"CERT": "tls.crt", "KEY": "tls.key", "CLIENT_CA": "ca.crt"} {
		if files[name] != c.VolumeMounts[at].MountPath+"/"+file {
			t.Errorf("%s is %q", name, files[name])
		}
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == "authorizer" && v.Secret != nil && v.Secret.SecretName == "webhook-authorizer"
	}) {
		t.Error("the certificates are of no Secret")
	}
}
