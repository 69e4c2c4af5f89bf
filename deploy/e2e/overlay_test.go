package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// overlays returns the folders of the shipped overlays.
func overlays(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("../overlays/*")
	if err != nil || len(dirs) < 2 {
		t.Fatalf("overlays are %q, %v", dirs, err)
	}
	return dirs
}

// built returns the objects that kubectl apply -k would apply.
func built(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("building %s: %v", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		data, err := resource.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// pods returns the templates of all pods, by the name of their workload.
func pods(t *testing.T, objects []*unstructured.Unstructured) map[string]*corev1.PodTemplateSpec {
	t.Helper()
	all := map[string]*corev1.PodTemplateSpec{}
	for _, object := range objects {
		fields, found, err := unstructured.NestedMap(object.Object, "spec", "template")
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			continue
		}
		template := &corev1.PodTemplateSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template); err != nil {
			t.Fatalf("%s: %v", object.GetName(), err)
		}
		all[object.GetName()] = template
	}
	return all
}

func TestPodsOfOverlaysAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for _, dir := range overlays(t) {
		for name, pod := range pods(t, built(t, dir)) {
			if answer := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)); !answer.Allowed {
				t.Errorf("%s: pods of %s: %s", dir, name, answer.ForbiddenDetail())
			}
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem ||
					c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
					t.Errorf("%s: %s/%s may write to its root, or has no bounds", dir, name, c.Name)
				}
			}
		}
	}
}

// More people can read manifests and variables than files of a Secret.
func TestManifestsDoNotHoldSecrets(t *testing.T) {
	for _, dir := range overlays(t) {
		objects := built(t, dir)
		for _, object := range objects {
			if object.GetKind() == "Secret" {
				t.Errorf("%s has Secret %s", dir, object.GetName())
			}
		}
		for name, pod := range pods(t, objects) {
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				for _, variable := range c.Env {
					if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
						t.Errorf("%s: %s of %s is from a Secret", dir, variable.Name, name)
					}
				}
				for _, from := range c.EnvFrom {
					if from.SecretRef != nil {
						t.Errorf("%s: variables of %s are from a Secret", dir, name)
					}
				}
			}
		}
	}
}

// Each workload has a network policy, its account and its settings, and a Service unless it is a Job.
func TestOverlayPodsHaveAccountPolicyAndSettings(t *testing.T) {
	for _, dir := range overlays(t) {
		have := map[string]bool{}
		objects := built(t, dir)
		for _, object := range objects {
			have[object.GetKind()+"/"+object.GetName()] = true
		}
		for name, pod := range pods(t, objects) {
			want := []string{"NetworkPolicy/" + name}
			if account := pod.Spec.ServiceAccountName; account != "" {
				want = append(want, "ServiceAccount/"+account)
			}
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				for _, from := range c.EnvFrom {
					want = append(want, "ConfigMap/"+from.ConfigMapRef.Name)
				}
			}
			if !have["Job/"+name] {
				want = append(want, "Service/"+name)
			}
			for _, one := range want {
				if !have[one] {
					t.Errorf("%s has no %s for %s", dir, one, name)
				}
			}
		}
	}
}

// Network policies open only ports that the pod declares, and no rule opens all ports.
func TestNetworkPoliciesNameDeclaredPorts(t *testing.T) {
	for _, dir := range overlays(t) {
		objects := built(t, dir)
		templates := pods(t, objects)
		for _, object := range objects {
			if object.GetKind() != "NetworkPolicy" || templates[object.GetName()] == nil {
				continue
			}
			declared := map[int64]bool{}
			for _, c := range templates[object.GetName()].Spec.Containers {
				for _, port := range c.Ports {
					declared[int64(port.ContainerPort)] = true
				}
			}
			rules, _, err := unstructured.NestedSlice(object.Object, "spec", "ingress")
			if err != nil {
				t.Fatal(err)
			}
			for _, rule := range rules {
				ports, _, err := unstructured.NestedSlice(rule.(map[string]any), "ports")
				if err != nil || len(ports) == 0 {
					t.Errorf("%s: a rule of %s lets everything in: %v", dir, object.GetName(), err)
				}
				for _, port := range ports {
					number, _ := port.(map[string]any)["port"].(int64)
					if !declared[number] {
						t.Errorf("%s: %s lets others reach port %d, at which nobody listens", dir, object.GetName(), number)
					}
				}
			}
		}
	}
}

// overlayOf writes an overlay outside of the checkout. DEPLOY in its text stands for the path of folder deploy.
func overlayOf(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	from, err := filepath.Rel(dir, base)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(strings.ReplaceAll(text, "DEPLOY", from)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// overlayWith returns the overlay dev with a component.
func overlayWith(t *testing.T, component string) string {
	t.Helper()
	return overlayOf(t, "resources: [DEPLOY/overlays/dev]\ncomponents: [DEPLOY/components/"+component+"]\n")
}

func TestRoutesAndIngressesMatchBase(t *testing.T) {
	for _, component := range []string{"httproute", "ingress"} {
		objects := built(t, overlayWith(t, component))
		if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return strings.EqualFold(o.GetKind(), component) }) {
			t.Errorf("%s is not there", component)
		}
	}
}
