package state

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
)

// BenchmarkMemory measures an informer of 100,000 bindings and the bindings that follow from them.
func BenchmarkMemory(b *testing.B) {
	const sources, roles, depth = 100_000, 100, 4
	var rules []infer.Rule
	for i := range roles {
		for d := range depth {
			rules = append(rules, infer.Rule{Name: fmt.Sprintf("r%02d-%d", i, d), Parent: infer.Role{Name: fmt.Sprintf("team-role-%d-%d", i, d)}, Child: infer.Role{Name: fmt.Sprintf("team-role-%d-%d", i, d+1)}})
		}
	}
	for b.Loop() {
		p := infer.DefaultPolicy()
		p.MaxGenerated = 1 << 40
		v := informer.New(informer.Config{Log: slog.New(slog.DiscardHandler)})
		s := New(v, "local", p)
		ruleSet := infer.NewRuleSet("ns", rules, p)
		n := 0
		put := func(o *rbacv1.RoleBinding) *infer.Binding {
			n++
			o.UID = types.UID(fmt.Sprintf("0a1b2c3d-0000-0000-0000-%012d", n))
			o.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0))
			data, err := json.Marshal(o)
			if err != nil {
				b.Fatal(err)
			}
			wire, err := event.Change{
				Key: s.BindingKey(o.Namespace, o.Name), Version: "v1", Kind: "RoleBinding", UID: string(o.UID), ResourceVersion: fmt.Sprint(n), Object: data,
				Epoch: "0a1b2c3d-0000-0000-0000-000000000000", ObservedAt: time.Now(), Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			}.Marshal()
			if err != nil {
				b.Fatal(err)
			}
			c, err := event.UnmarshalChange(s.BindingKey(o.Namespace, o.Name), wire)
			if err != nil {
				b.Fatal(err)
			}
			if err := v.Apply(b.Context(), c); err != nil {
				b.Fatal(err)
			}
			return s.Binding(o.Namespace, o.Name)
		}
		started := time.Now()
		for i := range sources {
			o := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns-%d", i/50), Name: fmt.Sprintf("binding-%d", i)},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: fmt.Sprintf("team-role-%d-0", i%roles)},
				Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: fmt.Sprintf("user-%d@example.com", i)}},
			}
			for _, d := range ruleSet.DesiredBindings(put(o)) {
				put(d.ToRoleBinding())
			}
		}
		loaded := time.Since(started)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-heap")
		b.ReportMetric(float64(m.HeapAlloc)/float64(n), "B/object")
		b.ReportMetric(loaded.Seconds(), "load-s")
		b.ReportMetric(float64(n), "objects")
		runtime.KeepAlive(s)
	}
}
