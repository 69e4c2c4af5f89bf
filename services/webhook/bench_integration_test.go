//go:build integration

package webhook_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/webhook"
)

// What a start begins with: so many bindings, where it is not said otherwise; each user has so many of them, one has more.
const (
	bindings = 100_000
	perUser  = 10
	most     = 1000
)

// BenchmarkStart is a start with bindings on the bus until questions are answered, what of memory is then in use, and how long
// it takes to list what somebody with a thousand bindings may.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{bindings, 10 * bindings} {
		b.Run(fmt.Sprint(n, " bindings"), func(b *testing.B) { start(b, n) })
	}
}

func start(b *testing.B, bindings int) {
	bed := &bed{Bed: testbed.NewBed(b), set: func(*webhook.Config) {}}
	bed.publish(bindings)
	bed.beat()
	before := heap()
	var start, list time.Duration
	n := 0
	for b.Loop() {
		n++
		began := time.Now()
		bed.serve()
		ask := func(user string) int {
			what := answered(bed, bed.client.WhatCan, &accessv1.WhatCanRequest{Subject: &accessv1.Subject{User: user}, PageSize: most})
			return len(what.GetRights())
		}
		if got := ask("user-1"); got != perUser {
			b.Fatalf("%d rights, want %d", got, perUser)
		}
		start += time.Since(began)
		began = time.Now()
		if got := ask("user-0"); got != most {
			b.Fatalf("%d rights, want %d", got, most)
		}
		list += time.Since(began)
		b.ReportMetric(float64(heap()-before)/float64(bindings), "B/binding")
		bed.running.Stop()
	}
	b.ReportMetric(start.Seconds()/float64(n), "s/start")
	b.ReportMetric(float64(list.Milliseconds())/float64(n), "ms/list")
}

// heap is what is in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// beat publishes heartbeats, as a watcher does.
func (b *bed) beat() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.T.Context()))
	var beating sync.WaitGroup
	b.T.Cleanup(func() { cancel(); beating.Wait() })
	beating.Go(func() {
		for ctx.Err() == nil {
			_ = publish.New(b.JS).Heartbeat(ctx, &eventv1.Heartbeat{Cluster: "local"}) // The next comes soon.
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
}

// publish puts bindings on the bus with all that they name, as if they were there.
func (b *bed) publish(bindings int) {
	b.T.Helper()
	b.Fill(append(kinds.IAM(), kinds.Stores()), func(put func(kinds.Kind, metav1.Object)) {
		meta := func(namespace, name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("0a1b2c3d-0000-0000-0000-" + name), Generation: 1}
		}
		protected := &iamv1alpha1.ProtectedResource{ObjectMeta: meta("", "project")}
		protected.Spec.ServiceRef.Name, protected.Spec.Kind, protected.Spec.Plural, protected.Spec.Permissions = projects, "Project", "projects", []string{"get", "list"}
		put(kinds.ProtectedResources(), protected)
		role := &iamv1alpha1.Role{ObjectMeta: meta(namespace, "reader")}
		role.Spec.IncludedPermissions = []string{projects + "/projects.get"}
		put(kinds.IAMRoles(), role)
		for i := range most {
			put(kinds.Projects(), &resourcemanagerv1alpha1.Project{ObjectMeta: meta("", fmt.Sprint("project-", i))})
		}
		for i := range bindings/perUser + 1 {
			put(kinds.Users(), &iamv1alpha1.User{ObjectMeta: meta("", fmt.Sprint("user-", i))})
		}
		for i := range bindings {
			user, project := meta("", fmt.Sprint("user-", max(0, (i-most)/perUser+1))), meta("", fmt.Sprint("project-", i%most))
			binding := &iamv1alpha1.PolicyBinding{ObjectMeta: meta(namespace, fmt.Sprint("binding-", i))}
			if i < most {
				user = meta("", "user-0")
			}
			binding.Spec.RoleRef.Name = "reader"
			binding.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "User", Name: user.Name, UID: string(user.UID)}}
			binding.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: projects, Kind: "Project", Name: project.Name, UID: string(project.UID)}
			put(kinds.PolicyBindings(), binding)
		}
	})
}
