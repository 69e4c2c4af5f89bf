package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// queryEnv is an informer with a server that answers from it.
type queryEnv struct {
	*Server
	t    *testing.T
	view *informer.Informer
	// incomplete makes the informer incomplete.
	incomplete atomic.Bool
	version    int
	// guarded is the time since which the webhooks are in force.
	guarded time.Time
	// awaited is the revision of the last wait.
	awaited string
	// namespaces holds the namespaces of the API server. If it is nil, every namespace exists.
	namespaces map[string]bool
	// live holds the objects of the API server.
	live map[event.Key]event.Change
}

func newQueryEnv(t *testing.T) *queryEnv {
	t.Helper()
	w := &queryEnv{t: t, view: informer.New(informer.Config{Cluster: "local", Log: slog.New(slog.DiscardHandler)}), live: map[event.Key]event.Change{}}
	s := state.New(w.view, "local", infer.DefaultPolicy())
	complete := func() error {
		if w.incomplete.Load() {
			return errMissing
		}
		return nil
	}
	changes := NewWatchCache(s, "here", complete)
	w.view.OnChange(changes.MarkRuleChanged)
	w.Server = NewServer(Config{
		NamespaceExists: func(_ context.Context, name string) (bool, error) {
			return w.namespaces == nil || w.namespaces[name], nil
		},
		State: s, Complete: complete, Revision: func() string { return fmt.Sprint(w.version) }, Changes: changes, Lister: w,
		Await: func(_ context.Context, sequence uint64, began time.Time) error {
			w.awaited = fmt.Sprint(sequence, " ", began.Unix())
			return complete()
		},
		Since:    func(context.Context) time.Time { return w.guarded },
		Finished: func(string) time.Time { return time.Unix(7, 0) },
	})
	return w
}

// List implements [LiveLister].
func (w *queryEnv) List(_ context.Context, kind kinds.Kind, namespace string) iter.Seq2[event.Change, error] {
	return func(yield func(event.Change, error) bool) {
		for key, c := range w.live {
			if key.GroupResource == kind.GroupResource && key.Namespace == namespace && !yield(c, nil) {
				return
			}
		}
	}
}

func (w *queryEnv) put(kind kinds.Kind, namespace, name string, object any) {
	w.t.Helper()
	w.version++
	c := event.Change{
		Key:     event.Key{Cluster: "local", GroupResource: kind.GroupResource, Namespace: namespace, Name: name},
		Version: kind.Version, Kind: kind.Kind, UID: "uid-" + name, ResourceVersion: fmt.Sprint(w.version), Generation: int64(w.version),
	}
	if c.Deleted = object == nil; !c.Deleted {
		data, err := json.Marshal(object)
		if err != nil {
			w.t.Fatal(err)
		}
		c.Object = data
	}
	if err := w.view.Apply(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	if w.live[c.Key] = c; c.Deleted {
		delete(w.live, c.Key)
	}
}

// role parses "name" or "ClusterRole/name".
func role(text string) infer.Role {
	name, cluster := strings.CutPrefix(text, infer.KindClusterRole+"/")
	return infer.Role{Name: name, Cluster: cluster}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

// do makes rules by "a>b" and bindings by "B=a{x,y}". It removes them by "-a>b" and "-B".
func (w *queryEnv) do(namespace, ops string) {
	w.t.Helper()
	for op := range strings.FieldsSeq(ops) {
		gone := strings.HasPrefix(op, "-")
		op = strings.TrimPrefix(op, "-")
		name, rest, binding := strings.Cut(op, "=")
		parent, child, rule := strings.Cut(op, ">")
		switch {
		case gone && rule:
			w.put(kinds.ImpliedRoles(), namespace, op, nil)
		case gone:
			w.put(kinds.RoleBindings(), namespace, op, nil)
		case rule:
			r := &rolev1alpha1.ImpliedRoles{ObjectMeta: metav1.ObjectMeta{Name: op, Namespace: namespace}}
			p, c := role(parent), role(child)
			r.Spec.InferenceRule = rolev1alpha1.InferenceRule{ParentRole: p.Name, ParentKind: p.Kind(), ChildRole: c.Name, ChildKind: c.Kind()}
			w.put(kinds.ImpliedRoles(), namespace, op, r)
		case binding:
			roleName, list, _ := strings.Cut(strings.TrimSuffix(rest, "}"), "{")
			b := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID("uid-" + name)},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role(roleName).Kind(), Name: role(roleName).Name},
			}
			for who := range strings.SplitSeq(list, ",") {
				b.Subjects = append(b.Subjects, user(who))
			}
			w.put(kinds.RoleBindings(), namespace, name, b)
		}
	}
}

// settle executes all plans in the namespace team.
func (w *queryEnv) settle() {
	w.t.Helper()
	const namespace = "team"
	rules := w.cfg.State.RuleSet(namespace)
	for _, source := range w.cfg.State.PossibleSourceNames(namespace) {
		for _, action := range rules.PlanSource(w.cfg.State.PlanInput(namespace, source)).Actions {
			var object any
			switch action.Verb {
			case infer.Create, infer.Update:
				object = action.ToRoleBinding()
			default:
			}
			w.put(kinds.RoleBindings(), namespace, action.Name, object)
		}
	}
}

func roleName(r *inferencev1.Role) string { return roleFromMessage(r).String() }

func roleNames(roles []*inferencev1.Role) string {
	list := make([]string, len(roles))
	for i, r := range roles {
		list[i] = roleName(r)
	}
	return strings.Join(list, " ")
}

func rowText(i *inferencev1.Inference) string {
	return fmt.Sprintf("%s/%s: %s", i.GetNamespace(), roleName(i.GetParent()), roleNames(i.GetChildRoles()))
}

func rowTexts(rows []*inferencev1.Inference) string {
	var list []string
	for _, r := range rows {
		list = append(list, rowText(r))
	}
	return strings.Join(list, "; ")
}

// receivedRows holds the rows that a stream has sent so far.
type receivedRows map[string]string

func (rows receivedRows) take(m *inferencev1.WatchInferencesResponse) {
	for _, r := range m.GetUpserted() {
		rows[r.GetNamespace()+"/"+roleName(r.GetParent())] = roleNames(r.GetChildRoles())
	}
	for _, k := range m.GetRemoved() {
		delete(rows, k.GetNamespace()+"/"+roleName(k.GetParent()))
	}
}

func (rows receivedRows) String() string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, key+": "+rows[key])
	}
	return strings.Join(list, "; ")
}

// must returns a function that returns the answer, or fails the test if there is an error.
func must[M any](m M, err error) func(*testing.T) M {
	return func(t *testing.T) M {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func expectRefused(t *testing.T, err error, code connect.Code, text string) {
	t.Helper()
	if connect.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %v: %s", err, code, text)
	}
}

var errMissing = errors.New("rules are missing")
