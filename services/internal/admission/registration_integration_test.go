//go:build integration

package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// configuration is a configuration name that the shipped RBAC rules allow.
const configuration = "entail-implied-role"

// replicaEnv holds an API server, and creates replicas of an admission server.
type replicaEnv struct {
	t     *testing.T
	kube  *testenv.KubeServer
	typed kubernetes.Interface
	// log receives the log of the replicas.
	log slog.Handler
}

func newReplicaEnv(t *testing.T) *replicaEnv {
	t.Helper()
	b := &replicaEnv{t: t, kube: testenv.StartKube(t), log: slog.NewTextHandler(t.Output(), nil)}
	b.typed = kubernetes.NewForConfigOrDie(b.kube.AdminConfig())
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = b.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, configuration, metav1.DeleteOptions{})
		_ = b.typed.CoreV1().Secrets(rbac.Namespace).Delete(ctx, configuration+"-admission", metav1.DeleteOptions{})
	})
	return b
}

// replica returns an admission server that checks its registration only when the test requests it.
func (b *replicaEnv) replica() *Server {
	b.t.Helper()
	s := newServer(b.t, Config{Service: "entail-system/implied-role-admission"}, func(o *Options) {
		o.Name, o.Namespace, o.Kube = configuration, rbac.Namespace, b.kube.ServiceConfig(b.t, topology.ImpliedRole)
		o.Log, o.Metrics = slog.New(b.log), prometheus.NewRegistry()
		o.Webhooks = []Webhook{{
			ValidatingWebhook: admissionregistrationv1.ValidatingWebhook{
				Name: "nothing.example.com",
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"*"}, Resources: []string{"nothing"}},
				}},
			},
			Validate: func(context.Context, *admissionv1.AdmissionRequest) error { return nil },
		}}
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.serveTLS(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	return s
}

func (b *replicaEnv) round(replicas ...*Server) {
	b.t.Helper()
	for _, s := range replicas {
		if err := s.refreshRegistrationOnce(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *replicaEnv) registered() *admissionregistrationv1.ValidatingWebhookConfiguration {
	b.t.Helper()
	c, err := b.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(b.t.Context(), configuration, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// trusted checks that the registered authorities match the certificates of all replicas. It returns the serial
// numbers.
func (b *replicaEnv) trusted(replicas ...*Server) string {
	b.t.Helper()
	client := b.registered().Webhooks[0].ClientConfig
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(client.CABundle)
	shown := ""
	for _, s := range replicas {
		conn, err := tls.Dial("tcp", s.listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: client.Service.Name + "." + client.Service.Namespace + ".svc"})
		if err != nil {
			b.t.Fatal(err)
		}
		shown += conn.ConnectionState().PeerCertificates[0].SerialNumber.String() + " "
		_ = conn.Close()
	}
	return shown
}

func TestReplicasShareCertificate(t *testing.T) {
	b := newReplicaEnv(t)
	one, two := b.replica(), b.replica()
	b.round(one, two, one)
	shown := b.trusted(one, two)
	was := b.registered()
	three := b.replica() // Starts later than the others.
	b.round(three, one, two)
	if now := b.trusted(one, two); now != shown || b.registered().ResourceVersion != was.ResourceVersion {
		t.Errorf("%s became %s, and version %s %s", shown, now, was.ResourceVersion, b.registered().ResourceVersion)
	}
	if authorities, err := cert.ParseCertsPEM(was.Webhooks[0].ClientConfig.CABundle); err != nil || len(authorities) != 1 {
		t.Errorf("%d authorities are trusted, %v", len(authorities), err)
	}
}

func TestConcurrentReplicasCreateOneCertificate(t *testing.T) {
	b := newReplicaEnv(t)
	replicas := make([]*Server, 4)
	errs := make(chan error, len(replicas))
	for i := range replicas {
		replicas[i] = b.replica()
		go func() { errs <- replicas[i].refreshRegistrationOnce(t.Context()) }()
	}
	for range replicas {
		<-errs // All but one may fail.
	}
	b.round(replicas...)
	b.round(replicas...)
	b.trusted(replicas...)
}

func TestCertificateIsRegisteredBeforeUse(t *testing.T) {
	b := newReplicaEnv(t)
	one, two := b.replica(), b.replica()
	b.round(one, two)
	before := b.trusted(one, two)
	one.validity, two.validity = 5*certificateValidity, 5*certificateValidity // Less than a third of the certificate's lifetime is left.
	for _, s := range []*Server{one, two} {
		b.round(s)
		if now := b.trusted(one, two); now != before {
			t.Errorf("%s is shown at once, after %s", now, before)
		}
	}
	b.round(one)
	half := b.trusted(one, two)
	b.round(two)
	after := strings.Fields(b.trusted(one, two))
	if half == before || after[0] != after[1] || strings.Contains(before, after[0]) {
		t.Errorf("after %s comes %s, then %v", before, half, after)
	}
}

// TestReplicasShareSecretPath calls replicas at the registered path, and at a path with only the
// webhook's name. Both replicas accept only the registered path, also after a renewal and after the loss of the
// Secret.
func TestReplicasShareSecretPath(t *testing.T) {
	b := newReplicaEnv(t)
	var log bytes.Buffer
	b.log = slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
	one, two := b.replica(), b.replica()
	var paths []string
	asked := func() (seed string) {
		t.Helper()
		path := *b.registered().Webhooks[0].ClientConfig.Service.Path
		paths = append(paths, strings.Split(path, "/")[1])
		for _, s := range []*Server{one, two} {
			for path, want := range map[string]int{path: http.StatusOK, "/nothing.example.com": http.StatusNotFound} {
				if code := b.posts(s, path); code != want {
					t.Errorf("%s answers %d", path, code)
				}
			}
		}
		return string(one.next.Load().seed)
	}
	b.round(one, two)
	first := asked()
	two.validity = 5 * certificateValidity
	b.round(two, one, two, one)
	if asked() != first {
		t.Error("the paths changed with a new certificate")
	}
	if err := b.typed.CoreV1().Secrets(rbac.Namespace).Delete(t.Context(), one.secretName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	two.validity = certificateValidity
	b.round(one, two)
	if asked() == first {
		t.Error("the paths did not change after the loss of the Secret")
	}
	for _, path := range paths {
		if strings.Contains(log.String(), path) {
			t.Errorf("the log contains a path: %s", log.String())
		}
	}
}

// posts sends a review to a replica and returns the status code.
func (b *replicaEnv) posts(s *Server, path string) int {
	b.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Post("https://"+s.listener.Addr().String()+path, "application/json", strings.NewReader(review(b.t, nil)))
	if err != nil {
		b.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func TestRegistrationIsRepaired(t *testing.T) {
	b := newReplicaEnv(t)
	s := b.replica()
	b.round(s)
	want := b.registered().Webhooks
	configurations := b.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	for name, change := range map[string]func() error{
		"ignored": func() error {
			c, ignore := b.registered(), admissionregistrationv1.Ignore
			c.Webhooks[0].FailurePolicy = &ignore
			_, err := configurations.Update(t.Context(), c, metav1.UpdateOptions{})
			return err
		},
		"emptied": func() error {
			c := b.registered()
			c.Webhooks = nil
			_, err := configurations.Update(t.Context(), c, metav1.UpdateOptions{})
			return err
		},
		"deleted": func() error { return configurations.Delete(t.Context(), configuration, metav1.DeleteOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			b.round(s)
			if got := b.registered().Webhooks; !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("it is %+v\nwant %+v", got, want)
			}
			b.trusted(s)
		})
	}
}

// Rules and conditions of a webhook can change, and objects written before still count as checked.
func TestWebhookRulesFollowRulesFunc(t *testing.T) {
	b := newReplicaEnv(t)
	var told []admissionregistrationv1.MatchCondition
	about := "true"
	s := newServer(t, Config{URL: "https://127.0.0.1:9"}, func(o *Options) {
		o.Name, o.Kube = configuration, b.kube.ServiceConfig(t, topology.ImpliedRole)
		o.Webhooks = []Webhook{{
			ValidatingWebhook: admissionregistrationv1.ValidatingWebhook{Name: "nothing.example.com"},
			RulesFunc: func(
				_ context.Context, _ []admissionregistrationv1.RuleWithOperations, is []admissionregistrationv1.MatchCondition,
			) ([]admissionregistrationv1.RuleWithOperations, []admissionregistrationv1.MatchCondition) {
				told = is
				return []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"*"}, Resources: []string{about}},
				}}, []admissionregistrationv1.MatchCondition{{Name: "about", Expression: about}}
			},
		}}
	})
	for _, about = range []string{"true", "false"} {
		b.round(s)
		since, err := s.EnforcedSince()
		switch is := b.registered().Webhooks[0]; {
		case len(is.MatchConditions) != 1 || is.MatchConditions[0].Expression != about || len(is.Rules) != 1 || is.Rules[0].Resources[0] != about:
			t.Errorf("it is about %+v, want %s", is, about)
		// Otherwise the time after a restart could be in the same second.
		case about == "true":
			testenv.Eventually(t, time.Minute, func() error { _, err := s.EnforcedSince(); return err })
		case err != nil || since.After(time.Now()):
			t.Errorf("it is in force since %s: %v", since, err)
		case len(told) != 1 || told[0].Expression != "true":
			t.Errorf("got %+v", told)
		}
	}
}

func TestRunKeepsWebhooksRegistered(t *testing.T) {
	b := newReplicaEnv(t)
	s := newServer(t, Config{URL: "https://127.0.0.1:9"}, func(o *Options) {
		o.Name, o.Kube = configuration, b.kube.ServiceConfig(t, topology.ImpliedRole)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	testenv.Eventually(t, time.Minute, s.RegistrationErr)
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
