//go:build compose

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// docker runs a docker command in the checkout, and returns its output.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := tryDocker(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryDocker(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "docker", args...) // Also during the cleanup of a test.
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("docker %s: %w\n%s", strings.Join(args, " "), err, &said)
	}
	return string(out), err
}

// composing returns the arguments of docker compose with the images that scripts/compose-test.sh chose.
func composing() []string { return []string{"compose", "--env-file", ".tmp/standins/env"} }

func compose(t *testing.T, args ...string) string {
	t.Helper()
	return docker(t, append(composing(), args...)...)
}

// start starts everything, including killed and stopped services, and waits until all are healthy. It retries, because
// compose gives up as soon as a dependent of a killed service is unhealthy.
func start(t *testing.T, services ...string) {
	t.Helper()
	args := append([]string{"up", "--detach", "--wait", "--wait-timeout", "180"}, services...)
	eventually(t, 3*soon, "everything is healthy", func(context.Context) error {
		_, err := tryDocker(t, append(composing(), args...)...)
		return err
	})
}

// removeAtEnd removes all containers and volumes at the end of a test. It logs their state first if the test failed.
func removeAtEnd(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(compose(t, "ps", "--all"), compose(t, "logs", "--tail", "40"))
		}
		compose(t, "--profile", "*", "down", "--volumes", "--timeout", "5")
	})
}

// composed starts the compose file, and returns its addresses on this machine.
func composed(t *testing.T) *machine {
	t.Helper()
	start(t)
	m := &machine{Kubeconfig: filepath.Join(t.TempDir(), "admin.kubeconfig"), TupleService: "http://127.0.0.1:18093", SyncService: "http://127.0.0.1:18091"}
	compose(t, "cp", "kubernetes:/data/admin.kubeconfig", m.Kubeconfig)
	config, err := clientcmd.LoadFromFile(m.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://127.0.0.1:16443"
	}
	if err := clientcmd.WriteToFile(*config, m.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return m
}

// containerAddress returns the IP address of a service's container, for ports that are not published.
func containerAddress(t *testing.T, service string) string {
	t.Helper()
	container := strings.TrimSpace(compose(t, "ps", "--quiet", service))
	return strings.TrimSpace(docker(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", container))
}

// token returns the token of a service account that may read the sample.
func (m *machine) token(t *testing.T) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(m.config(t))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.CoreV1().ServiceAccounts("entail-system").CreateToken(t.Context(), "tuple-sync", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

func TestEverythingRunsInContainers(t *testing.T) {
	removeAtEnd(t)
	m := composed(t)
	stores := m.objects(t).Resource(resource("stores"))
	for _, sample := range []string{"store.yaml", "impliedroles.yaml", "iam.yaml", "policydocuments/loadbalancer.yaml"} {
		for _, isReady := range applySamples(t, m, sample) {
			eventually(t, soon, "what "+sample+" declares is ready", isReady)
		}
	}
	asked(t, m)
	nothingIsLost(t, m)

	store := field(t, stores, "status", "storeId")
	compose(t, "stop")
	m = composed(t)
	stores = m.objects(t).Resource(resource("stores"))
	if again := field(t, stores, "status", "storeId"); again != store || store == "" {
		t.Errorf("the store was %q and is %q after a stop of everything", store, again)
	}
	asked(t, m)

	everythingIsScraped(t)
	theDashboardShows(t, m)
	nothingIsTold(t)
	imagesHoldNothingElse(t)
	anImageThatIsBuiltAgainIsTheSame(t)
	theBusIsGuarded(t)
	alertsFire(t, m)
	nothingIsLeft(t, m)
}

// nothingIsLeft uninstalls everything as docs/operate/compose.md describes, and requires that no object and no finalizer is
// left.
func nothingIsLeft(t *testing.T, m *machine) {
	t.Helper()
	t.Log(compose(t, "run", "--rm", "install", "uninstall", "--delete-objects", "--kubeconfig", "/etc/entail/kubeconfig"))
	objects := m.objects(t)
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, kind := range []schema.GroupVersionResource{definitions, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}} {
		list, err := objects.Resource(kind).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range list.Items {
			if kind == definitions || len(left.GetFinalizers()) > 0 || left.GetLabels()["app.kubernetes.io/managed-by"] == "implied-role" {
				t.Errorf("%s %s is left, with finalizers %v", kind.Resource, left.GetName(), left.GetFinalizers())
			}
		}
	}
	made := compose(t, "exec", "postgres", "psql", "--username=openfga", "--dbname=openfga", "--tuples-only",
		"--no-align", "--command=SELECT name FROM store WHERE deleted_at IS NULL UNION ALL SELECT 'a tuple of ' || store FROM tuple")
	if strings.TrimSpace(made) != "iam" { // Its Store retains it, without tuples.
		t.Errorf("OpenFGA has %s", strings.TrimSpace(made))
	}
}

// asked requires that requests with a valid token are answered, and no others.
func asked(t *testing.T, m *machine) {
	t.Helper()
	for _, test := range []struct {
		token string
		code  int
	}{{m.token(t), http.StatusOK}, {"", http.StatusUnauthorized}, {"forged", http.StatusUnauthorized}} {
		eventually(t, soon, "an answer", func(ctx context.Context) error {
			body := strings.NewReader(`{"store": "demo", "key": {"user": "user:anne", "relation": "editor", "object": "document:roadmap"}}`)
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.TupleService+"/entail.tuple.v1.TupleService/Check", body)
			if err != nil {
				return err
			}
			request.Header.Set("Content-Type", "application/json")
			if test.token != "" {
				request.Header.Set("Authorization", "Bearer "+test.token)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			var answer struct{ Allowed bool }
			if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
				return err
			}
			if response.StatusCode != test.code || answer.Allowed != (test.code == http.StatusOK) {
				return fmt.Errorf("status %d, allowed %t", response.StatusCode, answer.Allowed)
			}
			return nil
		})
	}
}
