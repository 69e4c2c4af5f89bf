package infer

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestGeneratedNameIsShortValidAndUnique(t *testing.T) {
	long := strings.Repeat("x", 300)
	seen := map[string]string{}
	for _, source := range []string{"a", "a-b", "", "B:Über/ß%", long, long + "y", "system:x.y."} {
		for _, child := range []Role{{Name: "b-c"}, {Name: "c"}, {Name: "c", Cluster: true}, {Name: long}, {Name: long + "z"}} {
			name := GeneratedName(source, child)
			if wrong := append(content.IsPathSegmentName(name), validation.IsDNS1123Subdomain(name)...); len(wrong) > 0 || len(name) > 63 {
				t.Errorf("name %q of %q and %s: %v", name, source, child, wrong)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("name %q is that of %s and of %s %s", name, other, source, child)
			}
			seen[name] = source + " " + child.String()
		}
	}
	if got := GeneratedName("B", role("writer")); got != "ir-b-writer-om2re3cacnfoyndm" {
		t.Errorf("got name %s; a new name recreates every generated binding", got)
	}
}

func TestGeneratedBindingNamesItsSource(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b b>ClusterRole/view B:1=a{x}")
	w.bindings["B:1"].Labels = map[string]string{"argocd.argoproj.io/instance": "app"}
	w.bindings["B:1"].Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	w.settle()
	b := w.bindings[GeneratedName("B:1", role("ClusterRole/view"))]
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
		t.Errorf("recreated source: got owner %+v", b.OwnerReferences)
	}
}

func TestPlanSourceRevertsEditedBinding(t *testing.T) {
	for name, harm := range map[string]func(*simulatedNamespace, string){
		"deleted":                  func(w *simulatedNamespace, name string) { delete(w.bindings, name) },
		"other subjects":           func(w *simulatedNamespace, name string) { w.bindings[name].Subjects = nil },
		"a label of ours is gone":  func(w *simulatedNamespace, name string) { delete(w.bindings[name].Labels, ImpliedLabel) },
		"a label of ours differs":  func(w *simulatedNamespace, name string) { w.bindings[name].Labels[SourceLabel] = "x" },
		"an annotation differs":    func(w *simulatedNamespace, name string) { w.bindings[name].Annotations[ViaAnnotation] = "x" },
		"the owner's UID is other": func(w *simulatedNamespace, name string) { w.bindings[name].OwnerReferences[0].UID = "x" },
		"it has no owner":          func(w *simulatedNamespace, name string) { w.bindings[name].OwnerReferences = nil },
		"another owns it":          func(w *simulatedNamespace, name string) { w.bindings[name].OwnerReferences[0].Name = "another" },
		"it has no label":          func(w *simulatedNamespace, name string) { w.bindings[name].Labels = nil },
		"another label":            func(w *simulatedNamespace, name string) { w.bindings[name].Labels[ManagedByLabel] = "me" },
		"nothing tells of us": func(w *simulatedNamespace, name string) {
			b := w.bindings[name]
			b.Labels, b.Annotations, b.OwnerReferences = nil, nil, nil
		},
	} {
		w := newSimulatedNamespace(t)
		w.do("a>b B=a{x}")
		w.settle()
		harm(w, GeneratedName("B", role("b")))
		writes := w.writes
		if w.settle(); w.generated(true) != "B:b{x}" || w.writes != writes+1 {
			t.Errorf("%s: %q after %d writes", name, w.generated(true), w.writes-writes)
		}
	}
}

func TestPlanSourceKeepsForeignMetadata(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b B=a{x}")
	w.settle()
	b := w.bindings[GeneratedName("B", role("b"))]
	b.Labels["team"], b.Annotations["note"] = "blue", "hello"
	b.OwnerReferences = append(b.OwnerReferences, metav1.OwnerReference{Kind: "ConfigMap", Name: "x", UID: "y"})
	writes := w.writes
	if w.settle(); w.writes != writes {
		t.Error("it was changed")
	}
}

func TestPlanSourceIgnoresForeignBindings(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(*simulatedNamespace)
		// obstacle is the expected message.
		obstacle string
	}{
		"X2: our labels on an explicit one": {harm: func(w *simulatedNamespace) {
			w.bindings["B"].Labels = map[string]string{ManagedByLabel: ManagedBy, ImpliedLabel: "true"}
		}},
		"our labels and an owner": {harm: func(w *simulatedNamespace) {
			w.bindings["B"].Labels = map[string]string{ManagedByLabel: ManagedBy}
			w.bindings["B"].OwnerReferences = []metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding", Name: "B"}}
		}},
		"X3: one with the name that we would give, made independent": {obstacle: NameConflict, harm: func(w *simulatedNamespace) {
			taken := GeneratedName("B", role("b"))
			w.bind(taken, role("b"), []string{"mallory"})
			w.bindings[taken].Labels = map[string]string{IndependentLabel: "true"}
		}},
		"one of ours, made independent": {obstacle: NameConflict, harm: func(w *simulatedNamespace) {
			w.settle()
			w.bindings[GeneratedName("B", role("b"))].Labels[IndependentLabel] = "true"
		}},
	} {
		w := newSimulatedNamespace(t)
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
		for _, change := range o.differences(w.all()) {
			obstacle = change.Obstacle
		}
		if obstacle != c.obstacle || c.obstacle == "" && w.generated(true) != "B:b{x}" {
			t.Errorf("%s: got obstacle %q, generated %q", name, obstacle, w.generated(true))
		}
	}
}

func TestIsSourceExcludesDeletingAndSystemBindings(t *testing.T) {
	now := metav1.Now()
	for name, harm := range map[string]func(*simulatedNamespace){
		"being deleted": func(w *simulatedNamespace) { w.bindings["B"].DeletionTimestamp = &now },
		"bootstrapping": func(w *simulatedNamespace) {
			w.bindings["B"].Labels = map[string]string{bootstrapping: "rbac-defaults"}
		},
		"excluded": func(w *simulatedNamespace) { w.policy.Excluded = []string{"ns"} },
	} {
		w := newSimulatedNamespace(t)
		w.do("a>b B=a{x}")
		w.settle()
		harm(w)
		if w.settle(); w.generated(false) != "" {
			t.Errorf("%s: %q", name, w.generated(false))
		}
	}
}

func TestPlanSourceWaitsForDeletingBinding(t *testing.T) {
	now := metav1.Now()
	w := newSimulatedNamespace(t)
	w.do("a>b B=a{x}")
	w.settle()
	w.bindings[GeneratedName("B", role("b"))].DeletionTimestamp = &now
	o, writes := w.settle(), w.writes
	if changes := o.differences(w.all()); len(changes) != 1 || changes[0].Obstacle != Pending {
		t.Errorf("changes %v", changes)
	}
	w.do("-a>b")
	if w.settle(); w.writes != writes+1 {
		t.Errorf("%d writes to take its subjects, want one", w.writes-writes)
	}
}

func TestBindingUnmarshalsWrittenObject(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b b>ClusterRole/view B=a{x,group:g,sa:ns:bot}")
	for _, wanted := range w.infer().Desired {
		object := wanted.ToRoleBinding()
		object.UID = "u"
		want := wanted.ToBinding()
		want.UID = "u"
		if got := read(t, object); !reflect.DeepEqual(got, want) || !wanted.matchesBinding(got) {
			t.Errorf("read %+v, want %+v", got, want)
		}
	}
}

func TestIsGeneratedRequiresName(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b B=a{x}")
	w.settle()
	ours := GeneratedName("B", role("b"))
	for what, c := range map[string]struct {
		change    func(*rbacv1.RoleBinding)
		generated bool
		source    string
	}{
		"as it was made":       {func(*rbacv1.RoleBinding) {}, true, "B"},
		"another label":        {func(b *rbacv1.RoleBinding) { b.Labels[ManagedByLabel] = "me" }, true, "B"},
		"no owner":             {func(b *rbacv1.RoleBinding) { b.OwnerReferences = nil }, true, "B"},
		"another owner":        {func(b *rbacv1.RoleBinding) { b.OwnerReferences[0].Name = "C" }, true, "B"},
		"another annotation":   {func(b *rbacv1.RoleBinding) { b.Annotations[SourceAnnotation] = "C" }, true, "B"},
		"no label, annotation": {func(b *rbacv1.RoleBinding) { b.Labels, b.Annotations = nil, nil }, true, "B"},
		"nothing of it":        {func(b *rbacv1.RoleBinding) { b.Labels, b.Annotations, b.OwnerReferences = nil, nil, nil }, true, ""},
		"another role":         {func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "c" }, true, ""},
		"another name":         {func(b *rbacv1.RoleBinding) { b.Name = "ir-other" }, false, ""},
		"independent":          {func(b *rbacv1.RoleBinding) { b.Labels[IndependentLabel] = "true" }, false, ""},
		"not independent":      {func(b *rbacv1.RoleBinding) { b.Labels[IndependentLabel] = "no" }, true, "B"},
	} {
		object := w.bindings[ours].DeepCopy()
		c.change(object)
		if b := read(t, object); b.IsGenerated() != c.generated || b.Source != c.source || b.IsGenerated() && b.IsSource() {
			t.Errorf("%s: generated %v from %q, want %v from %q", what, b.IsGenerated(), b.Source, c.generated, c.source)
		}
	}
}

func TestIsReservedMatchesGeneratedNames(t *testing.T) {
	for name, want := range map[string]bool{
		GeneratedName("B", role("b")): true, GeneratedName("", role("ClusterRole/x")): true, "ir-x-abcdefgh234567ab": true,
		"ir-x": false, "ir-abcdefgh234567ab": false, "ir-x-abcdefgh234567a1": false, "ir-x-y-abcdefgh234567abc": false, "sir-x-abcdefgh234567ab": false,
		"ir-team-viewers": false, "": false,
	} {
		if IsReserved(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// TestPlanRemovesBindingWithReservedNameWithoutSource strips a generated binding, or forges one.
func TestPlanRemovesBindingWithReservedNameWithoutSource(t *testing.T) {
	forged := "ir-x-y-abcdefgh234567ab"
	for name, harm := range map[string]func(*simulatedNamespace) string{
		"forged": func(w *simulatedNamespace) string {
			w.bind(forged, role("a"), []string{"mallory"})
			return forged
		},
		"with the name of one that follows, and another role": func(w *simulatedNamespace) string {
			taken := GeneratedName("B", role("b"))
			delete(w.bindings, taken)
			w.bind(taken, role("other"), []string{"mallory"})
			return taken
		},
		"stripped before its source went": func(w *simulatedNamespace) string {
			b := w.bindings[GeneratedName("B", role("b"))]
			b.Labels, b.Annotations, b.OwnerReferences = nil, nil, nil
			w.do("-B")
			return b.Name
		},
	} {
		w := newSimulatedNamespace(t)
		w.do("a>b B=a{x}")
		w.settle()
		left := harm(w)
		changes := w.infer().differences(w.all())
		if !slices.ContainsFunc(changes, func(c BindingDifference) bool { return c.Name == left && c.Verb == Empty }) {
			t.Errorf("%s: it is no drift: %v", name, changes)
		}
		if w.settle(); len(w.bindings[left].Subjects) > 0 {
			t.Errorf("%s: it grants to %v", name, w.bindings[left].Subjects)
		}
		if got := w.bindings[GeneratedName(left, role("b"))]; got != nil {
			t.Errorf("%s: it is a source", name)
		}
	}
}

// TestPlanRemovesSubjectsOfBindingWithFinalizer puts a finalizer on a generated binding.
func TestPlanRemovesSubjectsOfBindingWithFinalizer(t *testing.T) {
	for name, c := range map[string]struct {
		change  string
		harm    func(*rbacv1.RoleBinding)
		granted string
		changes string
	}{
		"its source goes": {"-B", func(*rbacv1.RoleBinding) {}, "", "delete"},
		"its rule goes":   {"-a>b", func(*rbacv1.RoleBinding) {}, "", "delete"},
		"it is being deleted, and its source goes":      {"-B", deleting, "", "empty"},
		"it is being deleted, and a subject goes":       {"B=a{y}", deleting, "y", "update"},
		"it is being deleted, and nothing else changes": {"", deleting, "x,y", "Pending"},
	} {
		w := newSimulatedNamespace(t)
		w.do("a>b B=a{x,y}")
		w.settle()
		ours := w.bindings[GeneratedName("B", role("b"))]
		ours.Finalizers = []string{"example.com/held"}
		c.harm(ours)
		w.do(c.change)
		var changes []string
		for _, change := range w.infer().differences(w.all()) {
			changes = append(changes, cmp.Or(change.Verb.String(), change.Obstacle))
		}
		if got := strings.Join(changes, " "); got != c.changes {
			t.Errorf("%s: changes %q, want %q", name, got, c.changes)
		}
		w.settle()
		var granted []string
		for _, s := range w.bindings[ours.Name].Subjects {
			granted = append(granted, s.Name)
		}
		if got := strings.Join(granted, ","); got != c.granted {
			t.Errorf("%s: it grants to %q, want %q", name, got, c.granted)
		}
	}
}

func deleting(b *rbacv1.RoleBinding) {
	now := metav1.Now()
	b.DeletionTimestamp = &now
}
