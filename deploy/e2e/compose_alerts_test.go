//go:build compose

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
)

// everythingIsScraped starts Prometheus with the shipped alerts. It requires every service among the targets, and no
// firing alert. Grafana does not start, because no package provides it.
func everythingIsScraped(t *testing.T) {
	t.Helper()
	startPrometheus(t)
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
	if rules := alerts(t); len(rules) < 20 {
		t.Errorf("the alerts are %v", rules)
	} else {
		for name, rule := range rules {
			if rule.LastError != "" || rule.State == "firing" {
				t.Errorf("alert %s is %s: %s", name, rule.State, rule.LastError)
			}
		}
	}
}

// alert is a rule in a response of Prometheus.
type alert struct {
	Name, LastError, State, Query string
}

// alerts returns all alerts of Prometheus by name.
func alerts(t *testing.T) map[string]alert {
	t.Helper()
	var rules struct {
		Data struct {
			Groups []struct{ Rules []alert }
		}
	}
	if err := prometheus(t.Context(), "rules", &rules); err != nil || len(rules.Data.Groups) != 1 {
		t.Fatalf("the alerts are %+v, %v", rules, err)
	}
	named := map[string]alert{}
	for _, rule := range rules.Data.Groups[0].Rules {
		named[rule.Name] = rule
	}
	return named
}

// prometheus sends a query to the API of Prometheus.
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

// alertsFire causes faults and requires their alerts. The unit test alerts_test.yaml covers the alerts that need more
// time.
func alertsFire(t *testing.T, m *machine) {
	t.Helper()
	shortenAlerts(t)
	countersExist(t)
	stores := m.objects(t).Resource(resource("stores"))
	declare := func(spec string) {
		if _, err := stores.Patch(t.Context(), "demo", types.MergePatchType, []byte(spec), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	bus, err := jetstream.New(onTheBus(t, "admin", make(chan error, 10)))
	if err != nil {
		t.Fatal(err)
	}
	// Each fault stays during the next ones. Everything restarts only once, at the end.
	for _, fault := range []struct {
		name   string
		inject func()
		alerts []string
	}{
		{"a stream is lost, and a message is no change", func() {
			if err := errors.Join(bus.DeleteStream(t.Context(), "ENTAIL_RESULTS"),
				bus.Conn().Publish("entail.changes.local.core%2Eplatform-mesh%2Eio.stores._.nobody", []byte("no change"))); err != nil {
				t.Fatal(err)
			}
		}, []string{"EntailStreamsRestored", "EntailDeadLetters"}},
		{"OpenFGA and a service are down", func() {
			compose(t, "stop", "opensearch-sync", "openfga")
			declare(`{"spec":{"tuples":[]}}`)
		}, []string{"EntailServiceMissing", "EntailReconciliationsFail", "EntailChangeStuck", "EntailQueriesFail"}},
		{"NATS does not answer", func() {
			compose(t, "pause", "nats")
			declare(`{"spec":{"tuples":[{"object":"workspace:a","relation":"member","user":"user:zoe"}]}}`)
		}, []string{"EntailChangesNotPublished", "EntailViewOld"}},
		{"the watcher is down", func() { compose(t, "kill", "watcher") }, []string{"EntailNoWatcherLeads"}},
	} {
		eventually(t, soon, "no alert of it fires before "+fault.name, func(context.Context) error {
			rules := alerts(t)
			for _, name := range fault.alerts {
				if state := rules[name].State; state != "inactive" {
					return fmt.Errorf("%s is %s", name, state)
				}
			}
			return nil
		})
		fault.inject()
		expectAlerts(t, m, fault.name, fault.alerts)
	}
	compose(t, "unpause", "nats")
	start(t)
}

// countersExist waits until every counter in an alert has a value, even if it counted nothing yet.
func countersExist(t *testing.T) {
	t.Helper()
	eventually(t, soon, "every counter of an alert exists", func(ctx context.Context) error {
		var errs []error
		for name, rule := range alerts(t) {
			for _, counter := range regexp.MustCompile(`increase\(([^\[]+)\[`).FindAllStringSubmatch(rule.Query, -1) {
				exists, err := hasResult(ctx, "count_over_time("+counter[1]+"[5s]) > 1")
				if (!exists || err != nil) && name != "EntailDecisionsDiffer" { // Its counter exists only with --verify.
					errs = append(errs, fmt.Errorf("%s: counter %s not found, %w", name, counter[1], err))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// expectAlerts waits until each of the alerts has fired. It sends checks meanwhile.
func expectAlerts(t *testing.T, m *machine, fault string, names []string) {
	t.Helper()
	questions := tuplev1connect.NewTupleServiceClient(&http.Client{Transport: bearer(m.token(t))}, m.TupleService)
	question := &tuplev1.CheckRequest{Store: "demo", Key: &tuplev1.TupleKey{User: "user:anybody", Relation: "viewer", Object: "document:roadmap"}}
	fired := map[string]bool{}
	eventually(t, 2*soon, fault+": its alerts have fired", func(ctx context.Context) error {
		_, _ = questions.Check(ctx, question) // The result does not matter: an alert watches failures.
		var errs []error
		rules := alerts(t)
		for _, name := range names {
			if fired[name] = fired[name] || rules[name].State == "firing"; !fired[name] {
				errs = append(errs, fmt.Errorf("%s is %s: %s", name, rules[name].State, rules[name].Query))
			}
		}
		return errors.Join(errs...)
	})
}

// prometheusFiles is the folder in the checkout with the configuration and alerts of Prometheus.
const prometheusFiles = ".tmp/compose-test"

// startPrometheus starts Prometheus with the shipped files, but scrapes, discovers and evaluates every second.
func startPrometheus(t *testing.T) {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, prometheusFiles))
	if err != nil {
		t.Fatal(err)
	}
	writeShortened(t, "docker/prometheus.yaml", map[string]string{`interval: 15s`: "interval: 1s"})
	writeShortened(t, "observability/alerts.yaml", nil)
	override := "services:\n  prometheus:\n    volumes:\n"
	for _, file := range []string{"prometheus.yaml", "alerts.yaml"} {
		override += fmt.Sprintf("      - %s:/etc/prometheus/%s:ro\n", filepath.Join(dir, file), file)
	}
	file := filepath.Join(dir, "compose.yaml")
	if err := os.WriteFile(file, []byte(override), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COMPOSE_FILE", "docker-compose.yaml:"+file)
	start(t, "prometheus")
}

// shortenAlerts makes Prometheus read the alerts again, with seconds instead of minutes.
func shortenAlerts(t *testing.T) {
	t.Helper()
	writeShortened(t, "observability/alerts.yaml", map[string]string{`\[\d+m\]`: "[5s]", `for: \d+m`: "for: 0s", `(entail_view_age_seconds\)) > 30`: "$1 > 5"})
	compose(t, "kill", "--signal", "SIGHUP", "prometheus")
	eventually(t, soon, "Prometheus has read the alerts again", func(context.Context) error {
		if rules := alerts(t); !strings.Contains(rules["EntailStreamsRestored"].Query, "[5s]") || !strings.Contains(rules["EntailViewOld"].Query, "> 5") {
			return errors.New("the alerts are the shipped ones")
		}
		return nil
	})
}

// writeShortened writes a file of deploy for Prometheus, with each pattern replaced. The container sees the change.
func writeShortened(t *testing.T, from string, replacements map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", from))
	if err != nil {
		t.Fatal(err)
	}
	for pattern, replacement := range replacements {
		if !regexp.MustCompile(pattern).Match(text) {
			t.Fatalf("%s: %s not found", from, pattern)
		}
		text = regexp.MustCompile(pattern).ReplaceAll(text, []byte(replacement))
	}
	dir := filepath.Join(root, prometheusFiles)
	if err := os.MkdirAll(dir, 0o755); err != nil { // Prometheus runs as another user.
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(from)), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// theDashboardShows makes a change, and requires a result for every query of the dashboard.
func theDashboardShows(t *testing.T, m *machine) {
	t.Helper()
	dropTuplesOf(t, m.objects(t).Resource(resource("stores")), "user:beth")
	text, err := os.ReadFile(filepath.Join(root, "deploy", "observability", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || len(dashboard.Panels) < 15 {
		t.Fatalf("the dashboard is %+v, %v", dashboard, err)
	}
	eventually(t, soon, "every panel shows something", func(ctx context.Context) error {
		var errs []error
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				if there, err := hasResult(ctx, strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")); !there || err != nil {
					errs = append(errs, fmt.Errorf("%s: no result of %s, %w", panel.Title, target.Expr, err))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// hasResult reports whether a query has any result.
func hasResult(ctx context.Context, selector string) (bool, error) {
	var answer struct {
		Data struct{ Result []any }
	}
	err := prometheus(ctx, "query?query="+url.QueryEscape(selector), &answer)
	return len(answer.Data.Result) > 0, err
}
