//go:build compose

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// docker runs a command of Docker in the checkout, and returns what it says.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "docker", args...)
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, &said)
	}
	return string(out)
}

// compose is docker compose with the images that scripts/compose-test.sh chose.
func compose(t *testing.T, args ...string) string {
	t.Helper()
	return docker(t, append([]string{"compose", "--env-file", ".tmp/standins/env"}, args...)...)
}

// composed is what `docker compose up` started, as one sees it from this machine.
func composed(t *testing.T) *machine {
	t.Helper()
	compose(t, "up", "--detach", "--wait", "--wait-timeout", "180")
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

// token is one of a service account that may read the sample.
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
	m := composed(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(docker(t, "compose", "--env-file", ".tmp/standins/env", "logs", "--tail", "40"))
		}
	})
	stores := m.objects(t).Resource(resource("stores"))
	applySamples(t, m, "store.yaml")
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
	store := field(t, stores, "status", "storeId")
	asked(t, m)

	// A process that is killed, and a bus that starts again: what changes meanwhile is applied all the same.
	compose(t, "kill", "tuple-sync")
	compose(t, "restart", "nats")
	dropTuplesOf(t, stores, "user:beth")
	compose(t, "up", "--detach", "--wait", "--wait-timeout", "180")
	eventually(t, soon, "the change is applied", func(ctx context.Context) error { return ready(ctx, stores, "demo") })

	compose(t, "stop")
	m = composed(t)
	stores = m.objects(t).Resource(resource("stores"))
	if again := field(t, stores, "status", "storeId"); again != store || store == "" {
		t.Errorf("the store was %q and is %q after a stop of everything", store, again)
	}
	asked(t, m)
	for _, isReady := range applySamples(t, m, "iam.yaml") {
		eventually(t, soon, "what is declared of IAM is ready", isReady)
	}
	everythingIsScraped(t)
	nothingIsTold(t)
	theBusIsGuarded(t)
}

// everythingIsScraped has Prometheus look on, with the alerts. It starts without Grafana, which no package has.
func everythingIsScraped(t *testing.T) {
	t.Helper()
	compose(t, "up", "--detach", "--wait", "prometheus")
	workloads, err := filepath.Glob(filepath.Join(root, "deploy", "base", "*", "workload.yaml"))
	if err != nil || len(workloads) < 6 {
		t.Fatalf("the services are %q, %v", workloads, err)
	}
	var targets struct {
		Data struct {
			ActiveTargets []struct {
				Labels map[string]string `json:"discoveredLabels"`
				Health string            `json:"health"`
			} `json:"activeTargets"`
		} `json:"data"`
	}
	eventually(t, soon, "every service is scraped", func(ctx context.Context) error {
		if err := prometheus(ctx, "targets", &targets); err != nil {
			return err
		}
		up := map[string]bool{}
		for _, target := range targets.Data.ActiveTargets {
			up[target.Labels["__meta_dns_name"]] = target.Health == "up"
		}
		for _, workload := range workloads {
			if service := filepath.Base(filepath.Dir(workload)); !up[service] {
				return fmt.Errorf("%s: %v", service, targets.Data.ActiveTargets)
			}
		}
		return nil
	})
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct {
					Name      string `json:"name"`
					LastError string `json:"lastError"`
					State     string `json:"state"`
				} `json:"rules"`
			} `json:"groups"`
		} `json:"data"`
	}
	if err := prometheus(t.Context(), "rules", &rules); err != nil || len(rules.Data.Groups) != 1 || len(rules.Data.Groups[0].Rules) < 10 {
		t.Fatalf("the alerts are %+v, %v", rules, err)
	}
	for _, rule := range rules.Data.Groups[0].Rules {
		if rule.LastError != "" || rule.State == "firing" {
			t.Errorf("alert %s is %s: %s", rule.Name, rule.State, rule.LastError)
		}
	}
}

// prometheus asks its API.
func prometheus(ctx context.Context, what string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:19090/api/v1/"+what, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(answer)
}

// asked makes sure that who has a token is answered, and nobody else.
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

// nothingIsTold looks for every secret in what Docker tells of containers, images and their logs.
func nothingIsTold(t *testing.T) {
	t.Helper()
	containers := strings.Fields(compose(t, "ps", "--all", "--quiet"))
	told := docker(t, append([]string{"inspect"}, containers...)...) + compose(t, "logs")
	for image := range strings.FieldsSeq(docker(t, append([]string{"inspect", "--format", "{{.Image}}"}, containers...)...)) {
		told += docker(t, "history", "--no-trunc", image)
	}
	found := 0
	for _, secret := range secrets(t) {
		found++
		if strings.Contains(told, secret) {
			t.Errorf("a secret is in what Docker tells of containers")
		}
	}
	if found < 10 || !strings.Contains(told, "POSTGRES_PASSWORD_FILE") {
		t.Errorf("%d secrets were looked for, in %d bytes", found, len(told))
	}
}

// credentials is where the volume of that name is.
func credentials(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(docker(t, "volume", "inspect", "--format", "{{.Mountpoint}}", "entail_credentials"))
}

// secrets are all that `init` made.
func secrets(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(credentials(t), func(path string, _ fs.DirEntry, err error) error {
		if name := filepath.Base(path); err != nil || name != "seed" && name != "password" && name != "token" {
			return err
		}
		secret, err := os.ReadFile(path)
		all = append(all, strings.TrimSpace(string(secret)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// theBusIsGuarded tries what tuple-sync must not, as tuple-sync.
func theBusIsGuarded(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	dir := filepath.Join(credentials(t), "nats-tuple-sync")
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(authority)
	user, err := nats.NkeyOptionFromSeed(filepath.Join(dir, "seed"))
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 10)
	address := strings.TrimSpace(docker(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", strings.TrimSpace(compose(t, "ps", "--quiet", "nats"))))
	conn, err := nats.Connect("tls://"+address+":4222", user, nats.Secure(&tls.Config{RootCAs: trust, ServerName: "nats", MinVersion: tls.VersionTLS12}),
		nats.CustomInboxPrefix("_INBOX_tuple-sync"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(ctx, "ENTAIL_CHANGES"); err != nil {
		t.Errorf("it may not even look at the stream of changes: %v", err)
	}
	for what, try := range map[string]func() error{
		"publish a change": func() error { return conn.Publish("entail.changes.local.core.stores._.demo", []byte("forged")) },
		"delete a stream":  func() error { return conn.Publish("$JS.API.STREAM.DELETE.ENTAIL_CHANGES", nil) },
		"purge a stream":   func() error { return conn.Publish("$JS.API.STREAM.PURGE.ENTAIL_CHANGES", nil) },
		"change a stream":  func() error { return conn.Publish("$JS.API.STREAM.UPDATE.ENTAIL_CHANGES", []byte("{}")) },
	} {
		if err := cmp.Or(try(), conn.FlushWithContext(ctx)); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-ctx.Done():
			t.Fatalf("tuple-sync may %s", what)
		}
	}
}
