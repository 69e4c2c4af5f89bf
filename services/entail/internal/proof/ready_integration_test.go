//go:build integration

package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// editsEnv sets a larger number of edits than fits into every run of the tests.
	editsEnv    = "ENTAIL_READY_EDITS"
	readyEdits  = 120
	readyStores = 2
	readyParts  = 4
)

// declaredTypeStatus holds the fields of a Store or an AuthorizationModel that the check needs. Each object declares
// one type of its own, so it depends on no other object.
type declaredTypeStatus struct {
	metav1.ObjectMeta `json:"metadata"`

	Kind string `json:"kind"`
	Spec struct {
		CoreModule string                `json:"coreModule"`
		Model      string                `json:"model"`
		StoreRef   corev1alpha1.StoreRef `json:"storeRef"`
		Tuples     []corev1alpha1.Tuple  `json:"tuples"`
	} `json:"spec"`
	Status struct {
		StoreID            string             `json:"storeId"`
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func read(u *unstructured.Unstructured) (*declaredTypeStatus, error) {
	data, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	o := &declaredTypeStatus{}
	return o, json.Unmarshal(data, o)
}

// ownType returns the type that an object declares.
func ownType(name string) string { return strings.ReplaceAll(name, "-", "_") }

// slip is a line that does not parse: the last valid version of the object stays live.
const slip = "    define slip [user]\n"

// fits reports whether the object's text parses, and defines the relation of every tuple.
func (o *declaredTypeStatus) fits() bool {
	return !strings.Contains(o.Spec.CoreModule+o.Spec.Model, slip) && !slices.ContainsFunc(o.Spec.Tuples, func(t corev1alpha1.Tuple) bool {
		return !strings.Contains(o.Spec.CoreModule+o.Spec.Model, "define "+t.Relation+":")
	})
}

// claims reports whether the object is Ready in its present generation.
func (o *declaredTypeStatus) claims() bool {
	return o.Status.ObservedGeneration == o.Generation && ready(o.Status.Conditions, o.Generation)
}

// readyChecker watches every version of the objects, and compares the Ready ones with OpenFGA.
type readyChecker struct {
	*inProcessServices
	t *testing.T
	// kept counts comparisons during which the object did not change.
	kept atomic.Int32
}

func (p *readyChecker) watch(ctx context.Context, kind kinds.Kind) {
	w, err := p.objects.Resource(kind.GroupVersionResource()).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		p.t.Error(err)
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Deleted {
			continue
		}
		o, err := read(u)
		if err != nil {
			p.t.Error(err)
			return
		}
		if !o.claims() {
			continue
		}
		if !o.fits() {
			p.t.Errorf("%s %s@%s says that it is ready, and its tuples %v do not fit %q", o.Kind, o.Name, o.ResourceVersion, o.Spec.Tuples, o.Spec.CoreModule+o.Spec.Model)
		}
		wrong, err := p.compare(ctx, o)
		if err == nil {
			err = p.conclude(ctx, kind, o, wrong)
		}
		if err != nil && ctx.Err() == nil {
			p.t.Error(err)
		}
	}
}

// conclude counts a comparison only if the object has not changed meanwhile.
func (p *readyChecker) conclude(ctx context.Context, kind kinds.Kind, o *declaredTypeStatus, wrong string) error {
	now, err := p.objects.Resource(kind.GroupVersionResource()).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil || now.GetGeneration() != o.Generation {
		return err
	}
	if p.kept.Add(1); wrong != "" {
		return fmt.Errorf("%s %s@%s says that it is ready, and %s", o.Kind, o.Name, o.ResourceVersion, wrong)
	}
	return nil
}

// compare returns a difference between an object and OpenFGA, or an empty text.
func (p *readyChecker) compare(ctx context.Context, o *declaredTypeStatus) (wrong string, err error) {
	id := o.Status.StoreID
	if o.Kind != "Store" {
		store, err := p.objects.Resource(kinds.Stores().GroupVersionResource()).Get(ctx, o.Spec.StoreRef.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		id, _, _ = unstructured.NestedString(store.Object, "status", "storeId")
	}
	latest, err := p.openFGA.ReadLatestModel(ctx, id)
	if err != nil {
		return "", err
	}
	if live := relationsOf(latest, ownType(o.Name)); !slices.Equal(live, relationsIn(o.Spec.CoreModule+o.Spec.Model)) {
		return fmt.Sprintf("live are the relations %v of %q", live, o.Spec.CoreModule+o.Spec.Model), nil
	}
	for _, t := range o.Spec.Tuples {
		_, found, err := p.openFGA.ReadTuple(ctx, id, &openfgav1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User})
		if err != nil || !found {
			return fmt.Sprintf("%v is not there", t), err
		}
	}
	return "", nil
}

func relationsOf(m *openfgav1.AuthorizationModel, typ string) []string {
	for _, d := range m.GetTypeDefinitions() {
		if d.GetType() == typ {
			return slices.Sorted(maps.Keys(d.GetRelations()))
		}
	}
	return nil
}

func relationsIn(text string) []string {
	var found []string
	for _, part := range strings.Split(text, "define ")[1:] {
		name, _, _ := strings.Cut(part, ":")
		found = append(found, name)
	}
	slices.Sort(found)
	return found
}

// edit changes an object: its text, its tuples, or both. It sometimes removes the relation of a tuple.
func (p *readyChecker) edit(name, end string) {
	p.t.Helper()
	text := "module " + ownType(name) + "\n"
	if strings.HasPrefix(name, "store") {
		text += "type user\n"
	}
	text += "type " + ownType(name) + "\n  relations\n"
	tuples := []corev1alpha1.Tuple{}
	for i := range 4 {
		relation := fmt.Sprintf("r%d", i)
		if i == 0 || rand.IntN(3) > 0 {
			text += "    define " + relation + ": [user]\n"
		} else if rand.IntN(4) > 0 {
			continue
		}
		if rand.IntN(2) == 0 {
			tuples = append(tuples, corev1alpha1.Tuple{Object: ownType(name) + ":1", Relation: relation, User: "user:1"})
		}
	}
	text += end
	if strings.HasPrefix(name, "store") {
		p.kube.Apply(p.t, kinds.Stores(), name, corev1alpha1.StoreSpec{CoreModule: text, Tuples: tuples})
		return
	}
	of, _ := strconv.Atoi(name[len("part-"):])
	p.kube.Apply(p.t, kinds.AuthorizationModels(), name, corev1alpha1.AuthorizationModelSpec{
		StoreRef: corev1alpha1.StoreRef{Name: fmt.Sprintf("store-%d", of%readyStores)}, Model: text, Tuples: tuples,
	})
}

// concluded waits until all objects have a Ready condition for their present generation, and are Ready exactly if they
// fit.
func (p *readyChecker) concluded(names ...string) {
	p.t.Helper()
	testenv.Eventually(p.t, time.Minute, func() error {
		for _, kind := range []kinds.Kind{kinds.Stores(), kinds.AuthorizationModels()} {
			objects, err := list[declaredTypeStatus](p.t.Context(), p.objects, kind)
			if err != nil {
				return err
			}
			for name, o := range objects {
				c := meta.FindStatusCondition(o.Status.Conditions, corev1alpha1.Ready)
				if slices.Contains(names, name) && (c == nil || c.ObservedGeneration != o.Generation || o.claims() != o.fits()) {
					return fmt.Errorf("%s of generation %d says %+v, and its tuples fit: %t", name, o.Generation, c, o.fits())
				}
			}
		}
		return nil
	})
}

func TestReadyFollowsOpenFGAUnderRandomEdits(t *testing.T) {
	edits := readyEdits
	if more, err := strconv.Atoi(os.Getenv(editsEnv)); err == nil {
		edits = more
	}
	p := &readyChecker{inProcessServices: startInProcessServices(t, topology.Watcher, topology.StoreSync, topology.TupleSync), t: t}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { p.watch(ctx, kinds.Stores()) })
	watching.Go(func() { p.watch(ctx, kinds.AuthorizationModels()) })
	var names []string
	for i := range readyStores {
		names = append(names, fmt.Sprintf("store-%d", i))
	}
	for i := range readyParts {
		names = append(names, fmt.Sprintf("part-%d", i))
	}
	for _, name := range names {
		p.edit(name, "")
	}
	p.concluded(names...)
	for range edits {
		name, end := names[rand.IntN(len(names))], ""
		if rand.IntN(6) == 0 {
			end = slip
		}
		if p.edit(name, end); rand.IntN(2) == 0 {
			p.concluded(name)
		}
	}
	p.concluded(names...)
	if t.Logf("%d promises in %d edits were kept", p.kept.Load(), edits); int(p.kept.Load()) < edits/10 {
		t.Errorf("only %d promises could be compared", p.kept.Load())
	}
}
