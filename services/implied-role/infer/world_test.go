package infer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testingT is the common part of tests and rapid properties.
type testingT interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// simulatedNamespace is one namespace in which plans are executed at once.
type simulatedNamespace struct {
	t        testingT
	policy   Policy
	rules    map[string]Rule
	bindings map[string]*rbacv1.RoleBinding
	uids     int
	// writes counts the executed actions.
	writes int
}

func newSimulatedNamespace(t testingT) *simulatedNamespace {
	return &simulatedNamespace{t: t, policy: DefaultPolicy(), rules: map[string]Rule{}, bindings: map[string]*rbacv1.RoleBinding{}}
}

// role parses "name" or "ClusterRole/name".
func role(text string) Role {
	name, cluster := strings.CutPrefix(text, clusterPrefix)
	return Role{Name: name, Cluster: cluster}
}

func roles(text string) []Role {
	var list []Role
	for r := range strings.FieldsSeq(text) {
		list = append(list, role(r))
	}
	return list
}

func names(list []Role) string {
	texts := make([]string, len(list))
	for i, r := range list {
		texts[i] = r.String()
	}
	return strings.Join(texts, " ")
}

// subject parses "alice", "group:team" or "sa:namespace:name".
func subject(text string) rbacv1.Subject {
	switch parts := strings.Split(text, ":"); parts[0] {
	case "group":
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: parts[1]}
	case "sa":
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: parts[1], Name: parts[2]}
	}
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: text}
}

// do executes operations that are separated by spaces. "a>b" makes a rule of that name, "name:a>b" one with a name, and
// "-a>b" removes a rule. "B=role{alice,bob}" makes or changes a binding, and "-B" removes it.
func (w *simulatedNamespace) do(ops string) {
	w.t.Helper()
	for op := range strings.FieldsSeq(ops) {
		gone := strings.HasPrefix(op, "-")
		op = strings.TrimPrefix(op, "-")
		switch {
		case strings.Contains(op, "="):
			name, rest, _ := strings.Cut(op, "=")
			roleName, list, _ := strings.Cut(strings.TrimSuffix(rest, "}"), "{")
			w.bind(name, role(roleName), strings.FieldsFunc(list, func(r rune) bool { return r == ',' }))
		case strings.Contains(op, ">"):
			name, rule := op, op
			if i := strings.Index(op, ":"); i >= 0 && i < strings.Index(op, ">") && !strings.HasPrefix(op, "system:") {
				name, rule = op[:i], op[i+1:]
			}
			parent, child, _ := strings.Cut(rule, ">")
			if delete(w.rules, name); !gone {
				w.rules[name] = Rule{Name: name, Parent: role(parent), Child: role(child), Created: time.Unix(int64(len(w.rules)), 0)}
			}
		case gone:
			delete(w.bindings, op)
		default:
			w.t.Fatalf("what is %q?", op)
		}
	}
}

func (w *simulatedNamespace) uid() types.UID {
	w.uids++
	return types.UID(fmt.Sprint(w.uids))
}

func (w *simulatedNamespace) bind(name string, r Role, who []string) {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: w.uid()}, RoleRef: r.toRoleRef()}
	if was, ok := w.bindings[name]; ok && was.RoleRef == r.toRoleRef() {
		b.ObjectMeta = was.ObjectMeta
	}
	for _, s := range who {
		b.Subjects = append(b.Subjects, subject(s))
	}
	w.bindings[name] = b
}

func (w *simulatedNamespace) namespace() NamespaceInput {
	return NamespaceInput{Name: "ns", Rules: slices.Collect(maps.Values(w.rules)), Bindings: w.all()}
}

func (w *simulatedNamespace) all() []*Binding {
	var list []*Binding
	for _, name := range slices.Sorted(maps.Keys(w.bindings)) {
		list = append(list, read(w.t, w.bindings[name]))
	}
	return list
}

// read decodes an object as the service does, or returns nil.
func read(t testingT, object *rbacv1.RoleBinding) *Binding {
	t.Helper()
	if object == nil {
		return nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatalf("%v", err)
	}
	b := &Binding{}
	if err := json.Unmarshal(data, b); err != nil {
		t.Fatalf("%v", err)
	}
	return b
}

func (w *simulatedNamespace) infer() InferenceResult {
	return EvaluateNamespace(w.namespace(), w.policy)
}

// settle executes the plan and expects that nothing is left to do.
func (w *simulatedNamespace) settle() InferenceResult {
	w.t.Helper()
	o := w.infer()
	first, then, last := ScheduleActions(o.PlannedActions(w.all()))
	for _, a := range slices.Concat(first, then, last) {
		w.apply(a)
		w.writes++
	}
	for _, a := range o.PlannedActions(w.all()) {
		w.t.Errorf("after all is done, %s of %s is left", a.Verb, a.Name)
	}
	return o
}

// differences lists the differences of all plans.
func (o InferenceResult) differences(bindings []*Binding) []BindingDifference {
	var list []BindingDifference
	for plan := range o.Rules.PlanAllSources(bindings) {
		list = append(list, plan.Differences()...)
	}
	return list
}

func (w *simulatedNamespace) apply(a Action) {
	switch a.Verb {
	case Create:
		if w.bindings[a.Name] != nil {
			w.t.Errorf("%s is created and there already", a.Name)
		}
		b := a.ToRoleBinding()
		b.UID = w.uid()
		w.bindings[a.Name] = b
	case Update:
		b, was := a.ToRoleBinding(), w.bindings[a.Name]
		b.UID, b.Finalizers, b.DeletionTimestamp = was.UID, was.Finalizers, was.DeletionTimestamp
		for key, value := range w.bindings[a.Name].Labels {
			if _, ours := b.Labels[key]; !ours {
				b.Labels[key] = value
			}
		}
		w.bindings[a.Name] = b
	case Delete:
		if b := w.bindings[a.Name]; len(b.Finalizers) > 0 { // The applier empties such a binding first.
			now := metav1.Now()
			b.DeletionTimestamp, b.Subjects = &now, nil
			return
		}
		delete(w.bindings, a.Name)
	case Empty:
		w.bindings[a.Name].Subjects = nil
	default:
		w.t.Errorf("%s was to be carried out", a.Verb)
	}
}

// generated lists the generated bindings as "B:child B:child{subjects}…", with subjects only if withSubjects is true.
func (w *simulatedNamespace) generated(withSubjects bool) string {
	var list []string
	for _, b := range w.all() {
		if !b.IsGenerated() {
			continue
		}
		text := b.Source + ":" + b.Role.String()
		if withSubjects {
			var who []string
			for _, s := range b.Subjects {
				who = append(who, strings.TrimPrefix(s.Kind+"/"+s.Namespace+"/"+s.Name, "User//"))
			}
			text += "{" + strings.Join(who, ",") + "}"
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// identity returns the UID of the binding that source generates for child, or "".
func (w *simulatedNamespace) identity(source, child string) types.UID {
	if b := w.bindings[GeneratedName(source, role(child))]; b != nil {
		return b.UID
	}
	return ""
}
