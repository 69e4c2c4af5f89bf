package authz

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// indexWithManyBindings returns an index with the given number of bindings, ten for each user. Each binding is on a
// tree; there are
// 26,000 trees per 100,000 bindings.
func indexWithManyBindings(bindings int) *Index {
	x := indexWithTree()
	for i := range 10 {
		x.SetRole("one", fmt.Sprint("role", i), &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}})
	}
	for i := range bindings/10 + 1 {
		x.SetUser(user(i), &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
	}
	for i := range objects(bindings) {
		x.SetTarget("a/Tree", "one", tree(i), &iam.BindingTarget{Namespace: "one", UID: "2"})
	}
	for i := range bindings {
		x.SetBinding("one", fmt.Sprint("b", i), bind(i, objects(bindings)))
	}
	return x
}

func objects(bindings int) int { return bindings*26/100 + 1 }
func user(i int) string        { return fmt.Sprint("user", i) }
func tree(i int) string        { return fmt.Sprint("tree", i) }

func bind(i, objects int) *iamv1alpha1.PolicyBinding {
	b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: tree(i * 7 % objects), UID: "2"})
	b.UID = types.UID(fmt.Sprint(i))
	b.Spec.RoleRef.Name, b.Spec.Subjects[0].Name = fmt.Sprint("role", i%10), user(i/10)
	return b
}

// processorTimePerOp returns a function that reports the processor time of this process per operation. Other processes
// do not affect this time.
func processorTimePerOp(b *testing.B) (report func()) {
	b.Helper()
	before := processorTime(b)
	return func() { b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op") }
}

func processorTime(b *testing.B) (ns int64) {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

func BenchmarkDecide(b *testing.B) {
	for _, bindings := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(bindings), func(b *testing.B) {
			x := indexWithManyBindings(bindings)
			questions := make([]Query, 1<<16)
			for i := range questions {
				questions[i] = get(user(rand.IntN(bindings/10)), "one", tree(rand.IntN(objects(bindings))))
			}
			b.ReportAllocs()
			defer processorTimePerOp(b)()
			for i := 0; b.Loop(); i++ {
				x.Decide(questions[i%len(questions)])
			}
		})
	}
}

func BenchmarkDecideOnOneTarget(b *testing.B) {
	for _, bindings := range []int{10, 10_000} {
		b.Run(fmt.Sprint(bindings), func(b *testing.B) {
			x := indexWithTree()
			for i := range bindings {
				x.SetUser(user(i/10), &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
				x.SetBinding("one", fmt.Sprint("b", i), bind(i, 1))
			}
			x.SetTarget("a/Tree", "one", tree(0), &iam.BindingTarget{Namespace: "one", UID: "2"})
			q := get(user(0), "one", tree(0))
			defer processorTimePerOp(b)()
			for b.Loop() {
				x.Decide(q)
			}
		})
	}
}

func BenchmarkSetBinding(b *testing.B) {
	const bindings = 100_000
	x := indexWithManyBindings(bindings)
	defer processorTimePerOp(b)()
	for i := 0; b.Loop(); i++ {
		x.SetBinding("one", "b-more", bind(i%bindings, objects(bindings)))
		x.SetBinding("one", "b-more", nil)
	}
}

func BenchmarkSetRoleInheritedByThousand(b *testing.B) {
	x := indexWithTree()
	for i := range 1000 {
		x.SetRole("one", fmt.Sprint("heir", i), &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{InheritedRoles: []iamv1alpha1.ScopedRoleReference{{Name: "reader"}}}})
	}
	with := &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}}
	for b.Loop() {
		x.SetRole("one", "reader", &iamv1alpha1.Role{})
		x.SetRole("one", "reader", with)
	}
}

func BenchmarkListHeldRolesOfThousandBindings(b *testing.B) {
	x := indexWithTree()
	x.SetUser(user(0), &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
	for i := range 1000 {
		x.SetTarget("a/Tree", "one", tree(i), &iam.BindingTarget{Namespace: "one", UID: "2"})
		declared := bind(i, 1000)
		declared.Spec.RoleRef.Name, declared.Spec.Subjects[0].Name = "reader", user(0)
		x.SetBinding("one", fmt.Sprint("b", i), declared)
	}
	for b.Loop() {
		if n := len(x.ListHeldRoles(Subject{User: user(0)})); n != 1000 {
			b.Fatalf("%d rights", n)
		}
	}
}

// BenchmarkSetRoleInLargeCycle measures a change of one role in a large inheritance cycle. The owner
// of a namespace can create such a cycle.
func BenchmarkSetRoleInLargeCycle(b *testing.B) {
	const roles = 1000
	x := indexWithTree()
	spec := iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}
	for i := range roles {
		spec.InheritedRoles = append(spec.InheritedRoles, iamv1alpha1.ScopedRoleReference{Name: fmt.Sprint("role", i)})
	}
	for i := range roles {
		x.SetRole("one", fmt.Sprint("role", i), &iamv1alpha1.Role{Spec: spec})
	}
	less := spec
	less.IncludedPermissions = nil
	for i := 0; b.Loop(); i++ {
		x.SetRole("one", "role0", &iamv1alpha1.Role{Spec: [...]iamv1alpha1.RoleSpec{less, spec}[i%2]})
	}
}

// BenchmarkMissingToJoin measures MissingToJoin for a group with very many roles. The owner of a namespace can bind
// any number of roles to a group.
func BenchmarkMissingToJoin(b *testing.B) {
	const many = 3000
	x, staff := indexWithTree(), []iamv1alpha1.Subject{{Kind: "Group", Namespace: "one", Name: "staff", UID: "3"}}
	x.SetGroup("one", "staff", &iamv1alpha1.Group{ObjectMeta: metav1.ObjectMeta{UID: "3"}})
	x.SetTarget("a/Tree", "one", "ash", &iam.BindingTarget{Namespace: "one", UID: "2"})
	for i := range many {
		x.SetRole("one", fmt.Sprint("role", i), &iamv1alpha1.Role{})
		bound := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "ash", UID: "2"})
		bound.Spec.RoleRef.Name, bound.Spec.Subjects = fmt.Sprint("role", i), staff
		x.SetBinding("one", fmt.Sprint("b", i), bound)
	}
	for b.Loop() {
		if m, lacks := x.MissingToJoin(Subject{User: user(0)}, Ref{"one", "staff"}); lacks {
			b.Fatalf("missing: %+v", m)
		}
	}
}

// BenchmarkDecideBelowVeryManyOwners gives an object very many owners, each of which also has very many owners.
func BenchmarkDecideBelowVeryManyOwners(b *testing.B) {
	x, folders := indexWithFolders(140)
	x.SetTarget(file().Type, file().Namespace, file().Name, &iam.BindingTarget{Namespace: "one", UID: "2", Owners: folders})
	x.SetRole("one", "reader", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/files.get"}}})
	x.SetUser("alice", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
	x.SetBinding("one", "b", binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Cabinet", Namespace: "one", Name: "n1", UID: "3"}))
	q := Query{Subject: Subject{User: "alice"}, Permission: "a/files.get", Type: file().Type, Namespace: "one", Name: file().Name}
	defer processorTimePerOp(b)()
	for b.Loop() {
		x.Decide(q)
	}
}
