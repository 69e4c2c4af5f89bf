//go:build integration

package webhook_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Default sizes of a benchmark: the number of bindings, the bindings per user, and those of user-0, who has the most.
const (
	bindings = 100_000
	perUser  = 10
	most     = 1000
)

// memoryLimit is the memory limit of the Go runtime in the process.
const memoryLimit = "800MiB"

// BenchmarkStart measures the start of a process with bindings on NATS until it answers, and its memory. It also
// measures the list of rights of a user with a thousand bindings.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{bindings, 10 * bindings} {
		b.Run(fmt.Sprint(n, " bindings"), func(b *testing.B) { start(b, n) })
	}
}

func start(b *testing.B, bindings int) {
	bed := &bed{Env: testenv.NewEnv(b)}
	bed.publish(bindings)
	b.Setenv("GOMEMLIMIT", memoryLimit)
	var start, list time.Duration
	n := 0
	for b.Loop() {
		n++
		began, address := time.Now(), freeAddress(b)
		process := testenv.SpawnService(b, topology.Webhook, bed.NATS, bed.Kube, "--listen", address, "--log-level", "warn")
		bed.client = accessv1connect.NewAccessServiceClient(http.DefaultClient, "http://"+address)
		has := func(user string, want int) {
			testenv.Eventually(b, patient, func() error {
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

// patient bounds a start on a busy machine.
const patient = 10 * time.Minute

// resident returns the peak and the current memory of a process, in MiB.
func resident(b *testing.B, p testenv.Process) (peak, now float64) {
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

// holderOf returns the user of a binding.
func holderOf(i int) string {
	if i < most {
		return "user-0"
	}
	return fmt.Sprint("user-", (i-most)/perUser+1)
}

// publish writes bindings and all objects that they name to NATS, as if they existed.
func (b *bed) publish(bindings int) {
	b.T.Helper()
	b.PublishObjects(append(kinds.IAMKinds(), kinds.Stores()), func(put func(kinds.Kind, metav1.Object)) {
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
			put(kinds.IAMUsers(), &iamv1alpha1.User{ObjectMeta: meta("", fmt.Sprint("user-", i))})
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
