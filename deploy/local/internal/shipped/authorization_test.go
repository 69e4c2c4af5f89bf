// Package shipped tests what deploy/authorization has for API servers with the code of the API server itself.
package shipped

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/client-go/tools/clientcmd"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	kubeadmscheme "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/scheme"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer"
	"k8s.io/kubernetes/pkg/kubeapiserver/options"
	"sigs.k8s.io/yaml"
)

const folder = "../../../authorization"

// mounted is where the files are in the examples.
const mounted = "/etc/kubernetes/entail"

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// placed is authorization.yaml in a file, where the files that it names are here.
func placed(t *testing.T) string {
	t.Helper()
	here, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "authorization.yaml")
	if err := os.WriteFile(file, bytes.ReplaceAll(read(t, "authorization.yaml"), []byte(mounted), []byte(here)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// loaded is the shipped configuration, as an API server of all authorizers takes it.
func loaded(t *testing.T) *apiserverapi.AuthorizationConfiguration {
	t.Helper()
	config, _, err := authorizer.LoadAndValidateFile(placed(t), authorizationcel.NewDefaultCompiler(), sets.New[apiserverapi.AuthorizerType]("Node", "RBAC"))
	if err != nil {
		t.Fatalf("the API server refuses authorization.yaml: %v", err)
	}
	return config
}

func TestAPIServerAcceptsConfiguration(t *testing.T) {
	all := loaded(t).Authorizers
	last := all[len(all)-1]
	if last.Type != "Webhook" || last.Webhook == nil {
		t.Fatalf("the last authorizer is %+v", last)
	}
	w := last.Webhook
	if w.CacheAuthorizedRequests || w.CacheUnauthorizedRequests || w.FailurePolicy != "NoOpinion" || w.SubjectAccessReviewVersion != "v1" {
		t.Errorf("answers are kept, or a failure is one: %+v", w)
	}
	if at := *w.ConnectionInfo.KubeConfigFile; filepath.Base(at) != "webhook.kubeconfig" {
		t.Errorf("the webhook is found by %s", at)
	}
}

func TestAPIServerAcceptsKubeconfig(t *testing.T) {
	config, err := clientcmd.Load(read(t, "webhook.kubeconfig"))
	if err == nil {
		_, err = clientcmd.NewDefaultClientConfig(*config, nil).RawConfig()
	}
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.Clusters[context.Cluster] == nil || config.AuthInfos[context.AuthInfo] == nil {
		t.Fatalf("the current context leads nowhere: %+v", config)
	}
	if server := config.Clusters[context.Cluster].Server; server != "https://webhook.entail-system.svc:8443/core/v1alpha/webhook" {
		t.Errorf("the API server asks %s", server)
	}
	who := config.AuthInfos[context.AuthInfo]
	for _, file := range []string{config.Clusters[context.Cluster].CertificateAuthority, who.ClientCertificate, who.ClientKey} {
		if filepath.Dir(file) != mounted {
			t.Errorf("%s is not where the examples mount it", file)
		}
	}
}

// isTaken gives flags to the options of an API server. The file that they name is at another place here.
func isTaken(t *testing.T, flags []string) error {
	t.Helper()
	at := slices.Index(flags, "--authorization-config="+mounted+"/authorization.yaml")
	if at < 0 {
		t.Fatalf("nobody is told of the configuration: %q", flags)
	}
	flags = slices.Clone(flags)
	flags[at] = "--authorization-config=" + placed(t)
	o, set := options.NewBuiltInAuthorizationOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(set)
	if err := set.Parse(flags); err != nil {
		return err
	}
	for _, err := range append(o.Complete(), o.Validate()...) {
		return err
	}
	return nil
}

// k3s passes each value on as a flag, and its own mode unless it is told of a configuration.
func TestK3sAcceptsFlags(t *testing.T) {
	var config struct {
		Flags []string `json:"kube-apiserver-arg"`
	}
	if err := yaml.UnmarshalStrict(read(t, "k3s.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	var flags []string
	for _, flag := range config.Flags {
		flags = append(flags, "--"+flag)
	}
	if err := isTaken(t, flags); err != nil {
		t.Error(err)
	}
	if isTaken(t, append(flags, "--authorization-mode=")) == nil {
		t.Error("an empty mode is taken beside a configuration: then this test tells nothing")
	}
}

func kubeadm(t *testing.T, data []byte) *kubeadmapi.ClusterConfiguration {
	t.Helper()
	decoder := serializer.NewCodecFactory(kubeadmscheme.Scheme, serializer.EnableStrict).UniversalDecoder(kubeadmapi.SchemeGroupVersion)
	config := &kubeadmapi.ClusterConfiguration{}
	if err := runtime.DecodeInto(decoder, data, config); err != nil {
		t.Fatal(err)
	}
	return config
}

// mounts says that a configuration of kubeadm has the API server read the files, and that they are there.
func mounts(t *testing.T, config *kubeadmapi.ClusterConfiguration) {
	t.Helper()
	var flags []string
	for _, argument := range config.APIServer.ExtraArgs {
		flags = append(flags, "--"+argument.Name+"="+argument.Value)
	}
	if err := isTaken(t, flags); err != nil {
		t.Error(err)
	}
	if v := config.APIServer.ExtraVolumes; len(v) != 1 || v[0].MountPath != mounted || v[0].HostPath != mounted || !v[0].ReadOnly {
		t.Errorf("the API server has of the host: %+v", v)
	}
}

func TestKubeadmAcceptsConfiguration(t *testing.T) { mounts(t, kubeadm(t, read(t, "kubeadm.yaml"))) }

// kind's patches have no version: kind puts one of kubeadm's into its own configuration of that version.
func TestKindPatchIsKubeadmPatch(t *testing.T) {
	var config struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Nodes      []struct {
			Role        string
			ExtraMounts []struct {
				HostPath, ContainerPath string
				ReadOnly                bool
			}
			KubeadmConfigPatches []string
		}
	}
	if err := yaml.UnmarshalStrict(read(t, "kind.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	if config.APIVersion != "kind.x-k8s.io/v1alpha4" || config.Kind != "Cluster" || len(config.Nodes) != 1 || config.Nodes[0].Role != "control-plane" {
		t.Fatalf("kind is told %+v", config)
	}
	node := config.Nodes[0]
	if m := node.ExtraMounts; len(m) != 1 || m[0].ContainerPath != mounted || !m[0].ReadOnly {
		t.Errorf("the node has of the host: %+v", m)
	}
	if len(node.KubeadmConfigPatches) != 1 || strings.Contains(node.KubeadmConfigPatches[0], "apiVersion") {
		t.Fatalf("patches are %q", node.KubeadmConfigPatches)
	}
	mounts(t, kubeadm(t, []byte("apiVersion: kubeadm.k8s.io/v1beta3\n"+node.KubeadmConfigPatches[0])))
}
