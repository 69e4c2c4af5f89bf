package infer

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestANameIsShortLegalAndNobodyElses(t *testing.T) {
	long := strings.Repeat("x", 300)
	seen := map[string]string{}
	for _, source := range []string{"a", "a-b", "", "B:Über/ß%", long, long + "y", "system:x.y."} {
		for _, child := range []Role{{Name: "b-c"}, {Name: "c"}, {Name: "c", Cluster: true}, {Name: long}, {Name: long + "z"}} {
			name := Name(source, child)
			if wrong := append(content.IsPathSegmentName(name), validation.IsDNS1123Subdomain(name)...); len(wrong) > 0 || len(name) > 63 {
				t.Errorf("name %q of %q and %s: %v", name, source, child, wrong)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("name %q is that of %s and of %s %s", name, other, source, child)
			}
			seen[name] = source + " " + child.String()
		}
	}
	if got := Name("B", role("writer")); got != "ir-b-writer-om2re3cacnfoyndm" {
		t.Errorf("the name is %s now: every generated binding would be made anew", got)
	}
}

func TestAGeneratedBindingSaysWhereItComesFrom(t *testing.T) {
	w := newWorld(t)
	w.do("a>b b>ClusterRole/view B:1=a{x}")
	w.bindings["B:1"].Labels = map[string]string{"argocd.argoproj.io/instance": "app"}
	w.bindings["B:1"].Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	w.settle()
	b := w.bindings[Name("B:1", role("ClusterRole/view"))]
	wantAnnotations := map[string]string{SourceAnnotation: "B:1", ParentAnnotation: "a", ChildAnnotation: "ClusterRole/view", ViaAnnotation: "a -> b -> ClusterRole/view"}
	if !maps.Equal(b.Annotations, wantAnnotations) {
		t.Errorf("annotations %v", b.Annotations)
	}
	if len(b.Labels) != 4 || b.Labels[ManagedByLabel] != "implied-role" || b.Labels[ImpliedLabel] != "true" {
		t.Errorf("labels %v", b.Labels)
	}
	for key, value := range b.Labels {
		if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
			t.Errorf("label %s=%s: %v", key, value, wrong)
		}
	}
	if o := b.OwnerReferences; len(o) != 1 || o[0].UID != w.bindings["B:1"].UID || o[0].Controller != nil || o[0].BlockOwnerDeletion != nil {
		t.Errorf("owners %+v", o)
	}
	w.do("-B:1")
	w.do("B:1=a{x}")
	uid := b.UID
	w.settle()
	if b = w.bindings[b.Name]; b.OwnerReferences[0].UID != w.bindings["B:1"].UID || b.UID != uid {
		t.Errorf("after the source was made anew it belongs to %+v", b.OwnerReferences)
	}
}

func TestWhatIsDoneToAGeneratedBindingIsUndone(t *testing.T) {
	for name, harm := range map[string]func(*world, string){
		"deleted":                  func(w *world, name string) { delete(w.bindings, name) },
		"other subjects":           func(w *world, name string) { w.bindings[name].Subjects = nil },
		"a label of ours is gone":  func(w *world, name string) { delete(w.bindings[name].Labels, ImpliedLabel) },
		"a label of ours differs":  func(w *world, name string) { w.bindings[name].Labels[SourceLabel] = "x" },
		"an annotation differs":    func(w *world, name string) { w.bindings[name].Annotations[ViaAnnotation] = "x" },
		"the owner's UID is other": func(w *world, name string) { w.bindings[name].OwnerReferences[0].UID = "x" },
	} {
		w := newWorld(t)
		w.do("a>b B=a{x}")
		w.settle()
		harm(w, Name("B", role("b")))
		writes := w.writes
		if w.settle(); w.generated(true) != "B:b{x}" || w.writes != writes+1 {
			t.Errorf("%s: %q after %d writes", name, w.generated(true), w.writes-writes)
		}
	}
}

func TestWhatOthersAddToAGeneratedBindingMayStay(t *testing.T) {
	w := newWorld(t)
	w.do("a>b B=a{x}")
	w.settle()
	b := w.bindings[Name("B", role("b"))]
	b.Labels["team"], b.Annotations["note"] = "blue", "hello"
	b.OwnerReferences = append(b.OwnerReferences, metav1.OwnerReference{Kind: "ConfigMap", Name: "x", UID: "y"})
	writes := w.writes
	if w.settle(); w.writes != writes {
		t.Error("it was changed")
	}
}

func TestForeignBindingsAreNeverTouched(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(*world)
		// obstacle is what is said about it.
		obstacle string
	}{
		"X2: our labels on an explicit one": {harm: func(w *world) {
			w.bindings["B"].Labels = map[string]string{ManagedByLabel: ManagedBy, ImpliedLabel: "true"}
		}},
		"our labels and an owner": {harm: func(w *world) {
			w.bindings["B"].Labels = map[string]string{ManagedByLabel: ManagedBy}
			w.bindings["B"].OwnerReferences = []metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding", Name: "B"}}
		}},
		"X3: one with the name that we would give": {obstacle: NameConflict, harm: func(w *world) {
			w.bind(Name("B", role("b")), role("other"), []string{"mallory"})
		}},
		"ours without its label": {obstacle: NameConflict, harm: func(w *world) {
			w.settle()
			delete(w.bindings[Name("B", role("b"))].Labels, ManagedByLabel)
		}},
		"ours without its owner": {obstacle: NameConflict, harm: func(w *world) {
			w.settle()
			w.bindings[Name("B", role("b"))].OwnerReferences = nil
		}},
	} {
		w := newWorld(t)
		w.do("a>b B=a{x}")
		c.harm(w)
		before := map[string]string{}
		for name, b := range w.bindings {
			before[name] = b.String()
		}
		o := w.settle()
		for name, text := range before {
			if b := w.bindings[name]; b == nil || b.String() != text {
				t.Errorf("%s: %s was changed", name, name)
			}
		}
		obstacle := ""
		for _, change := range o.changes(w.all()) {
			obstacle = change.Obstacle
		}
		if obstacle != c.obstacle || c.obstacle == "" && w.generated(true) != "B:b{x}" {
			t.Errorf("%s: said %q, generated %q", name, obstacle, w.generated(true))
		}
	}
}

func TestWhatIsBeingDeletedOrTheSystemsOwnIsNoSource(t *testing.T) {
	now := metav1.Now()
	for name, harm := range map[string]func(*world){
		"being deleted": func(w *world) { w.bindings["B"].DeletionTimestamp = &now },
		"bootstrapping": func(w *world) { w.bindings["B"].Labels = map[string]string{bootstrapping: "rbac-defaults"} },
		"excluded":      func(w *world) { w.policy.Excluded = []string{"ns"} },
	} {
		w := newWorld(t)
		w.do("a>b B=a{x}")
		w.settle()
		harm(w)
		if w.settle(); w.generated(false) != "" {
			t.Errorf("%s: %q", name, w.generated(false))
		}
	}
}

func TestAGeneratedBindingThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	now := metav1.Now()
	w := newWorld(t)
	w.do("a>b B=a{x}")
	w.settle()
	w.bindings[Name("B", role("b"))].DeletionTimestamp = &now
	o, writes := w.settle(), w.writes
	if changes := o.changes(w.all()); len(changes) != 1 || changes[0].Obstacle != Pending {
		t.Errorf("changes %v", changes)
	}
	w.do("-a>b")
	if w.settle(); w.writes != writes {
		t.Error("it was deleted twice")
	}
}

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	w := newWorld(t)
	w.do("a>b b>ClusterRole/view B=a{x,group:g,sa:ns:bot}")
	for _, wanted := range w.infer().Desired {
		object := wanted.Object()
		object.UID = "u"
		want := wanted.Binding()
		want.UID = "u"
		if got := read(t, object); !reflect.DeepEqual(got, want) || !wanted.is(got) {
			t.Errorf("read %+v, want %+v", got, want)
		}
	}
}

func TestABindingThatWasGeneratedOnceIsKnownByItsName(t *testing.T) {
	w := newWorld(t)
	w.do("a>b B=a{x}")
	w.settle()
	ours := Name("B", role("b"))
	for what, c := range map[string]struct {
		change func(*rbacv1.RoleBinding)
		former string
	}{
		"ours":                 {func(*rbacv1.RoleBinding) {}, ""},
		"another label":        {func(b *rbacv1.RoleBinding) { b.Labels[ManagedByLabel] = "me" }, "B"},
		"no owner":             {func(b *rbacv1.RoleBinding) { b.OwnerReferences = nil }, "B"},
		"no label, annotation": {func(b *rbacv1.RoleBinding) { b.Labels, b.Annotations = nil, nil }, "B"},
		"nothing of it":        {func(b *rbacv1.RoleBinding) { b.Labels, b.Annotations, b.OwnerReferences = nil, nil, nil }, ""},
		"another name":         {func(b *rbacv1.RoleBinding) { b.Name = "ir-other" }, ""},
	} {
		object := w.bindings[ours].DeepCopy()
		c.change(object)
		if b := read(t, object); b.Former != c.former || b.Generated() != (what == "ours") {
			t.Errorf("%s: generated %v, former source %q, want %q", what, b.Generated(), b.Former, c.former)
		}
	}
}
