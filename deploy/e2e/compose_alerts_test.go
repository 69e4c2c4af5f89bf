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

// everythingIsScraped has Prometheus look on, with the alerts. It starts without Grafana, which no package has.
func everythingIsScraped(t *testing.T) {
	t.Helper()
	start(t, "prometheus")
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

// alert is a rule as Prometheus has it.
type alert struct {
	Name, LastError, State, Query string
}

// alerts are all of them, by name.
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

// alertsFire has Prometheus look every second, and alert at once instead of after minutes, and makes alerts fire by what they
// are for. What it cannot wait for here, alerts_test.yaml has fire.
func alertsFire(t *testing.T, m *machine) {
	t.Helper()
	hurry(t)
	eventually(t, soon, "what alerts count is there before there is something to count", func(ctx context.Context) error {
		var errs []error
		for name, rule := range alerts(t) {
			for _, counted := range regexp.MustCompile(`increase\(([^\[]+)\[`).FindAllStringSubmatch(rule.Query, -1) {
				if there, err := some(ctx, "count_over_time("+counted[1]+"[5s]) > 1"); (!there || err != nil) && name != "EntailDecisionsDiffer" { // Which takes --verify.
					errs = append(errs, fmt.Errorf("%s: there is no %s, %v", name, counted[1], err))
				}
			}
		}
		return errors.Join(errs...)
	})
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
	questions := tuplev1connect.NewTupleServiceClient(&http.Client{Transport: bearer(m.token(t))}, m.TupleService)
	anybody := &tuplev1.CheckRequest{Store: "demo", Key: &tuplev1.TupleKey{User: "user:anybody", Relation: "viewer", Object: "document:roadmap"}}
	for _, blow := range []struct {
		what  string
		does  func()
		fires []string
	}{
		{"somebody changes what is on the bus", func() {
			if err := errors.Join(bus.DeleteStream(t.Context(), "ENTAIL_ANNOUNCE"),
				bus.Conn().Publish("entail.changes.local.core%2Eplatform-mesh%2Eio.stores._.nobody", []byte("no change"))); err != nil {
				t.Fatal(err)
			}
		}, []string{"EntailStreamsRestored", "EntailDeadLetters"}},
		{"OpenFGA is away, and a service", func() {
			compose(t, "stop", "opensearch-sync", "openfga")
			declare(`{"spec":{"tuples":[]}}`)
		}, []string{"EntailServiceMissing", "EntailReconciliationsFail", "EntailChangeStuck", "EntailQueriesFail"}},
		{"the watcher is away", func() {
			start(t)
			compose(t, "stop", "watcher")
		}, []string{"EntailNoWatcherLeads", "EntailViewOld"}},
		{"NATS is away", func() {
			start(t)
			compose(t, "pause", "nats")
			declare(`{"spec":{"tuples":[{"object":"workspace:a","relation":"member","user":"user:zoe"}]}}`)
		}, []string{"EntailChangesNotPublished"}},
	} {
		blow.does()
		fired := map[string]bool{}
		eventually(t, 2*soon, blow.what+" is told", func(ctx context.Context) error {
			_, _ = questions.Check(ctx, anybody) // Whatever comes of it: somebody asks.
			var errs []error
			is := alerts(t)
			for _, name := range blow.fires {
				if fired[name] = fired[name] || is[name].State == "firing"; !fired[name] {
					errs = append(errs, fmt.Errorf("%s is %s: %s", name, is[name].State, is[name].Query))
				}
			}
			return errors.Join(errs...)
		})
	}
	compose(t, "unpause", "nats")
	start(t)
}

// hurry starts Prometheus anew with the same alerts, but without their patience.
func hurry(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	var mounts strings.Builder
	for from, patience := range map[string]map[string]string{
		"docker/prometheus.yaml":    {`interval: 15s`: "interval: 1s"},
		"observability/alerts.yaml": {`\[\d+m\]`: "[10s]", `for: \d+m`: "for: 0s"},
	} {
		text, err := os.ReadFile(filepath.Join(root, "deploy", from))
		if err != nil {
			t.Fatal(err)
		}
		for long, short := range patience {
			text = regexp.MustCompile(long).ReplaceAll(text, []byte(short))
		}
		file := filepath.Join(dir, filepath.Base(from))
		if err := os.WriteFile(file, text, 0o644); err != nil { // Prometheus is another user.
			t.Fatal(err)
		}
		fmt.Fprintf(&mounts, "      - %s:/etc/prometheus/%s:ro\n", file, filepath.Base(from))
	}
	override := filepath.Join(dir, "compose.yaml")
	if err := os.WriteFile(override, []byte("services:\n  prometheus:\n    volumes:\n"+mounts.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COMPOSE_FILE", "docker-compose.yaml:"+override)
	start(t, "prometheus")
}

// theDashboardShows something for every query that it has, once something has changed.
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
				if there, err := some(ctx, strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")); !there || err != nil {
					errs = append(errs, fmt.Errorf("%s shows nothing of %s, %v", panel.Title, target.Expr, err))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// some tells whether there is a number of it at all.
func some(ctx context.Context, selector string) (bool, error) {
	var answer struct {
		Data struct{ Result []any }
	}
	err := prometheus(ctx, "query?query="+url.QueryEscape(selector), &answer)
	return len(answer.Data.Result) > 0, err
}
