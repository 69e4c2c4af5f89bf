//go:build integration

package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
)

// What a start begins with: so many bindings, where it is not said otherwise; each user has so many of them, one has more.
const (
	bindings = 100_000
	perUser  = 10
	most     = 1000
)

// memoryLimit is what the Go runtime of the process is told to get along with.
const memoryLimit = "800MiB"

// BenchmarkStart is a start of a process with bindings on the bus until questions are answered, what it then has in use, and how
// long it takes to list what somebody with a thousand bindings may.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{bindings, 10 * bindings} {
		b.Run(fmt.Sprint(n, " bindings"), func(b *testing.B) { start(b, n) })
	}
}

func start(b *testing.B, bindings int) {
	bed := &bed{Bed: testbed.NewBed(b)}
	bed.publish(bindings)
	bed.beat()
	b.Setenv("GOMEMLIMIT", memoryLimit)
	var start, list time.Duration
	n := 0
	for b.Loop() {
		n++
		began, address := time.Now(), freeAddress(b)
		process := testbed.Spawn(b, topology.Webhook, bed.NATS, bed.Kube, "--listen", address, "--log-level", "warn")
		bed.client = accessv1connect.NewAccessServiceClient(http.DefaultClient, "http://"+address)
		has := func(user string, want int) {
			testbed.Eventually(b, patient, func() error {
				what, err := bed.client.WhatCan(b.Context(), &accessv1.WhatCanRequest{Subject: &accessv1.Subject{User: user}, PageSize: most})
				if err == nil && len(what.GetRights()) != want {
					err = fmt.Errorf("%d rights, want %d", len(what.GetRights()), want)
				}
				return err
			})
		}
		has("user-1", perUser)
		start += time.Since(began)
		began = time.Now()
		has("user-0", most)
		list += time.Since(began)
		peak, now := resident(b, process)
		b.ReportMetric(peak, "MiB-at-most")
		b.ReportMetric(now, "MiB")
		process.Kill()
	}
	b.ReportMetric(start.Seconds()/float64(n), "s/start")
	b.ReportMetric(float64(list.Milliseconds())/float64(n), "ms/list")
}

// patient is for as long as a start may take on a busy machine.
const patient = 10 * time.Minute

// resident is what a process has in memory, in MiB: at most so far, and now.
func resident(b *testing.B, p testbed.Process) (peak, now float64) {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	read := func(name string) float64 {
		_, rest, _ := strings.Cut(string(status), name+":")
		var kib float64
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			b.Fatal(err)
		}
		return kib / 1024
	}
	return read("VmHWM"), read("VmRSS")
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

// holderOf is who has a binding.
func holderOf(i int) string {
	if i < most {
		return "user-0"
	}
	return fmt.Sprint("user-", (i-most)/perUser+1)
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
			user, project := meta("", holderOf(i)), meta("", fmt.Sprint("project-", i%most))
			binding := &iamv1alpha1.PolicyBinding{ObjectMeta: meta(namespace, fmt.Sprint("binding-", i))}
			binding.Spec.RoleRef.Name = "reader"
			binding.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "User", Name: user.Name, UID: string(user.UID)}}
			binding.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: projects, Kind: "Project", Name: project.Name, UID: string(project.UID)}
			put(kinds.PolicyBindings(), binding)
		}
	})
}
