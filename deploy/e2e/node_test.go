//go:build compose

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const namespace = "entail-system"

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(command(t, root, "kubectl", args...))
}

// ours returns an overlay with the images that scripts/node-test.sh put on the node.
func ours(t *testing.T, overlay string) string {
	t.Helper()
	text := "resources: [DEPLOY/overlays/" + overlay + "]\nimages:\n"
	for _, name := range []string{"nats", "openfga/openfga", "postgres"} {
		variable := strings.ToUpper(filepath.Base(name)) + "_IMAGE"
		image, tag, _ := strings.Cut(os.Getenv(variable), ":")
		text += fmt.Sprintf("- {name: %s, newName: %s, newTag: %s}\n", name, image, tag)
	}
	for _, name := range append(services(t), "entail") {
		text += fmt.Sprintf("- {name: entail/%s, newTag: %s}\n", name, os.Getenv("ENTAIL_VERSION"))
	}
	return overlayOf(t, text)
}

// services returns the services that have a workload.
func services(t *testing.T) (names []string) {
	t.Helper()
	workloads, err := filepath.Glob(filepath.Join(root, "deploy", "base", "*", "workload.yaml"))
	if err != nil || len(workloads) < 6 {
		t.Fatalf("the services are %q, %v", workloads, err)
	}
	for _, workload := range workloads {
		names = append(names, filepath.Base(filepath.Dir(workload)))
	}
	return names
}

// installed installs an overlay as docs/operate/kubernetes.md describes, and waits until all pods are ready.
func installed(t *testing.T, overlay string) *machine {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			tell(t)
		}
	})
	kubectl(t, "apply", "--server-side", "--field-manager=entail", "-f", "deploy/admission", "-f", "deploy/crd")
	kubectl(t, "apply", "-k", overlay)
	rolledOut(t)
	m := &machine{Kubeconfig: os.Getenv("KUBECONFIG")}
	m.http.Timeout = 2 * time.Second // A request to a deleted pod gets no answer.
	m.TupleService = "http://" + kubectl(t, "-n", namespace, "get", "service", "tuple-sync", "-o", "jsonpath={.spec.clusterIP}") + ":8080"
	return m
}

// rolledOut waits until every pod exists and is ready.
func rolledOut(t *testing.T) {
	t.Helper()
	kubectl(t, "-n", namespace, "rollout", "status", "deployment", "--timeout=180s")
	kubectl(t, "-n", namespace, "rollout", "status", "statefulset", "--timeout=180s")
}

// tell logs the pods, events and logs of a failed test.
func tell(t *testing.T) {
	for _, args := range [][]string{
		{"-n", namespace, "get", "pods", "-o", "wide"},
		{"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
		{"-n", namespace, "logs", "--tail=200", "--prefix", "--all-containers", "--selector=app.kubernetes.io/part-of=entail", "--max-log-requests=40"},
	} {
		out, err := exec.Command("kubectl", args...).CombinedOutput()
		t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// killed kills the process of a pod with SIGKILL, and then deletes the pod.
func killed(t *testing.T, pod string) {
	t.Helper()
	container := kubectl(t, "-n", namespace, "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
	command(t, root, "scripts/node.sh", "inside", "ctr", "-n", "k8s.io", "task", "kill", "--signal", "SIGKILL", strings.TrimPrefix(container, "containerd://"))
	kubectl(t, "-n", namespace, "delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
}

// podsOf returns the names of a service's pods.
func podsOf(t *testing.T, service string) []string {
	t.Helper()
	return strings.Fields(kubectl(t, "-n", namespace, "get", "pods", "--selector=app.kubernetes.io/name="+service, "-o", "jsonpath={.items[*].metadata.name}"))
}

// everyServiceIsItsOwn checks the replicas and the account of every service.
func everyServiceIsItsOwn(t *testing.T, m *machine, replicas int32) {
	t.Helper()
	client, err := kubernetes.NewForConfig(m.config(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range services(t) {
		deployment, err := client.AppsV1().Deployments(namespace).Get(t.Context(), service, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if deployment.Status.ReadyReplicas != replicas || !available(deployment) || deployment.Spec.Template.Spec.ServiceAccountName != service {
			t.Errorf("%s: %d ready, as %q", service, deployment.Status.ReadyReplicas, deployment.Spec.Template.Spec.ServiceAccountName)
		}
		mayNothingElse(t, client, service)
	}
	out, err := exec.CommandContext(t.Context(), "kubectl", "-n", namespace, "run", "idle", "--image=idle", "--dry-run=server").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "restricted") {
		t.Errorf("a pod that may do what it likes: %v: %s", err, out)
	}
}

// mayNothingElse requires that a service lacks rights that no service needs.
func mayNothingElse(t *testing.T, client kubernetes.Interface, service string) {
	t.Helper()
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Resource: "secrets"},
		{Verb: "create", Resource: "pods"},
		{Verb: "delete", Group: "core.platform-mesh.io", Resource: "stores"},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "*", Group: "*", Resource: "*"},
	} {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + namespace + ":" + service,
				Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
				ResourceAttributes: &right,
			},
		}, metav1.CreateOptions{})
		if err != nil || answer.Status.Allowed {
			t.Errorf("%s may %s %s: %v", service, right.Verb, right.Resource, err)
		}
	}
}

func available(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == "True"
	})
}
