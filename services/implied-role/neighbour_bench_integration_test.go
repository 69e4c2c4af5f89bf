//go:build integration

package impliedrole_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// BenchmarkChangeBesideBusyNamespace measures a grant and a revocation in one namespace. Meanwhile a new rule or many
// new bindings in another namespace require many RoleBindings.
func BenchmarkChangeBesideBusyNamespace(b *testing.B) {
	const sources, children, inFlight = 500, 4, 32
	bed := newTestEnv(b)
	bed.StartReflector()
	bed.serveWith(func(*impliedrole.Config) {})
	busy := bed.in("busy")
	create := func(ctx context.Context) {
		var group errgroup.Group
		group.SetLimit(inFlight)
		for i := range sources {
			group.Go(func() error {
				return busy.create(ctx, &rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("source-%d", i)},
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "a"},
					Subjects:   []rbacv1.Subject{subject(fmt.Sprintf("user-%d", i))},
				})
			})
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	create(b.Context())
	for i := 1; i < children; i++ {
		busy.do(fmt.Sprintf("b%d>b%d", i-1, i))
	}
	bed.do("x>y B=x{u,v}")
	bed.becomes("B:y{u,v}")
	bed.AwaitNoCalls()
	var granted, revoked, all time.Duration
	n := 0
	measure := func(op, want string) time.Duration {
		started := time.Now()
		bed.do(op)
		testenv.Eventually(b, 5*time.Minute, func() error {
			if got := bed.generated(); got != want {
				return fmt.Errorf("generated %q", got)
			}
			return nil
		})
		return time.Since(started)
	}
	reach := func(want int) {
		testenv.Eventually(b, 5*time.Minute, func() error {
			if got := busy.countGenerated(); got != want {
				return fmt.Errorf("%d generated, want %d", got, want)
			}
			return nil
		})
	}
	for b.Loop() {
		n++
		started := time.Now()
		busy.do("a>b0")
		granted += measure("x>z", "B:y{u,v} B:z{u,v}")
		revoked += measure("B=x{u}", "B:y{u} B:z{u}")
		reach(sources * children)
		all += time.Since(started)
		busy.do("-a>b0")
		reach(0)
		bed.do("-x>z B=x{u,v}")
		bed.becomes("B:y{u,v}")
	}
	b.ReportMetric(granted.Seconds()/float64(n), "grant-s")
	b.ReportMetric(revoked.Seconds()/float64(n), "revoke-s")
	b.ReportMetric(all.Seconds()/float64(n), "busy-s")
}
