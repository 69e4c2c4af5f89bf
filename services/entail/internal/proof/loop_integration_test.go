//go:build integration

package proof

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/yaml"

	"github.com/entail-dev/entail/deploy"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// simpleOperator reconciles objects like Stores as a simple operator does: in one process, from a watch of the API
// server directly to OpenFGA. It writes finalizers, and a status at the end. So a crash leaks tuples, and every event
// writes all of them again. The comparison favors the loop: it has no discovery and only one kind.
type simpleOperator struct {
	kind kinds.Kind
	// records makes the loop write the store and its future tuples to a status before it writes them. A crash then
	// leaks nothing.
	records bool
	objects dynamic.NamespaceableResourceInterface
	seen    cache.Indexer
	openFGA *fga.Client
	// perCall is the number of tuples in one call.
	perCall int
}

// kindOfSimpleOperator returns the kind that a loop reconciles: Store in another API group, so that no service watches
// it.
func kindOfSimpleOperator(group string) kinds.Kind {
	kind := kinds.Stores()
	kind.GroupResource = event.GroupResource{Group: group, Resource: kind.Resource}
	return kind
}

// define installs the kind in the API server until the benchmark ends.
func (l *simpleOperator) define(b *testing.B, s *inProcessServices) {
	b.Helper()
	text, err := deploy.Files.ReadFile("crd/core.platform-mesh.io_stores.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var crd unstructured.Unstructured
	if err := yaml.Unmarshal(text, &crd.Object); err != nil {
		b.Fatal(err)
	}
	crd.SetName(l.kind.Resource + "." + l.kind.Group)
	if err := unstructured.SetNestedField(crd.Object, l.kind.Group, "spec", "group"); err != nil {
		b.Fatal(err)
	}
	unstructured.RemoveNestedField(crd.Object, "spec", "names", "shortNames")
	definitions := s.objects.Resource(kinds.CustomResourceDefinitions().GroupVersionResource())
	if _, err := definitions.Create(b.Context(), &crd, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := definitions.Delete(context.WithoutCancel(b.Context()), crd.GetName(), metav1.DeleteOptions{}); err != nil {
			b.Error(err)
		}
	})
	l.objects = s.objects.Resource(l.kind.GroupVersionResource())
	testenv.Eventually(b, time.Minute, func() error {
		_, err := l.objects.List(b.Context(), metav1.ListOptions{})
		return err
	})
}

// startLoop runs a loop until the benchmark ends.
func (s *inProcessServices) startLoop(b *testing.B, l *simpleOperator) {
	b.Helper()
	l.openFGA = s.backend.Client(b)
	l.define(b, s)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	informer := dynamicinformer.NewDynamicSharedInformerFactory(s.objects, 0).ForResource(l.kind.GroupVersionResource()).Informer()
	l.seen = informer.GetIndexer()
	add := func(o any) {
		if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			queue.Add(name)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	const workers = 10
	for range workers {
		running.Go(func() { l.work(ctx, queue) })
	}
	b.Cleanup(func() { queue.ShutDown(); cancel(); running.Wait() })
}

func (l *simpleOperator) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) {
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return
		}
		if l.reconcile(ctx, name) == nil {
			queue.Forget(name)
		} else {
			queue.AddRateLimited(name)
		}
		queue.Done(name)
	}
}

func (l *simpleOperator) reconcile(ctx context.Context, name string) error {
	found, there, err := l.seen.GetByKey(name)
	if err != nil || !there {
		return err
	}
	u, _ := found.(*unstructured.Unstructured)
	var o corev1alpha1.Store
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return err
	}
	both := []string{corev1alpha1.StoreFinalizer, corev1alpha1.TuplesFinalizer}
	switch {
	case o.DeletionTimestamp != nil:
		return l.finalize(ctx, o)
	case len(o.Finalizers) == 0:
		return l.patch(ctx, name, map[string]any{"metadata": map[string]any{"finalizers": both}})
	}
	status := *o.Status.DeepCopy()
	if err := l.sync(ctx, o, &status); err != nil || equality.Semantic.DeepEqual(status, o.Status) {
		return err
	}
	return l.patch(ctx, name, map[string]any{"status": status}, "status")
}

// sync makes the calls of one reconciliation in order.
func (l *simpleOperator) sync(ctx context.Context, o corev1alpha1.Store, status *corev1alpha1.StoreStatus) error {
	if err := l.syncStore(ctx, o.Name, status); err != nil {
		return err
	}
	if err := l.record(ctx, o, status); err != nil {
		return err
	}
	if err := l.syncModel(ctx, o.Spec.CoreModule, status); err != nil {
		return err
	}
	for call := range slices.Chunk(o.Spec.Tuples, l.perCall) {
		if err := l.openFGA.Write(ctx, status.StoreID, status.AuthorizationModelID, keys(call), nil); err != nil {
			return err
		}
	}
	gone := slices.DeleteFunc(slices.Clone(status.ManagedTuples), func(t corev1alpha1.Tuple) bool { return slices.Contains(o.Spec.Tuples, t) })
	if len(gone) > 0 {
		if err := l.openFGA.Write(ctx, status.StoreID, "", nil, keys(gone)); err != nil {
			return err
		}
	}
	status.ManagedTuples = o.Spec.Tuples
	types := []string{"AuthorizationModel", corev1alpha1.Ready, "Store", "TupleSubroutine"}
	var all []condition.Condition
	for _, typ := range types {
		all = append(all, condition.New(typ, true, "Complete", "All of it is done."))
	}
	status.Conditions = condition.MergeConditions(status.Conditions, types, o.Generation, metav1.Now(), all...)
	return nil
}

// record writes the store and its future tuples to the status, unless the status holds them already.
func (l *simpleOperator) record(ctx context.Context, o corev1alpha1.Store, status *corev1alpha1.StoreStatus) error {
	added := slices.DeleteFunc(slices.Clone(o.Spec.Tuples), func(t corev1alpha1.Tuple) bool { return slices.Contains(status.ManagedTuples, t) })
	if !l.records || status.StoreID == o.Status.StoreID && len(added) == 0 {
		return nil
	}
	status.ManagedTuples = slices.Concat(status.ManagedTuples, added)
	status.Conditions = condition.MergeConditions(status.Conditions, []string{corev1alpha1.Ready}, o.Generation, metav1.Now(),
		condition.New(corev1alpha1.Ready, false, corev1alpha1.Syncing, "Tuples are being written."))
	return l.patch(ctx, o.Name, map[string]any{"status": status}, "status")
}

func (l *simpleOperator) syncStore(ctx context.Context, name string, status *corev1alpha1.StoreStatus) error {
	if status.StoreID != "" {
		_, _, err := l.openFGA.GetStore(ctx, status.StoreID)
		return err
	}
	same, err := l.openFGA.FindStores(ctx, name)
	if err == nil && len(same) > 0 {
		status.StoreID = same[0].ID
		return nil
	}
	if err == nil {
		status.StoreID, err = l.openFGA.CreateStore(ctx, name)
	}
	return err
}

func (l *simpleOperator) syncModel(ctx context.Context, core string, status *corev1alpha1.StoreStatus) error {
	wanted, err := model.Merge(model.Module{DSL: core}, nil, model.Limits{})
	if err != nil {
		return err
	}
	if status.AuthorizationModelID != "" {
		is, err := l.openFGA.ReadModel(ctx, status.StoreID, status.AuthorizationModelID)
		if err != nil || model.Equal(is, wanted.Model) {
			return err
		}
	}
	status.AuthorizationModelID, err = l.openFGA.WriteModel(ctx, status.StoreID, wanted.Model)
	return err
}

func (l *simpleOperator) finalize(ctx context.Context, o corev1alpha1.Store) error {
	if len(o.Finalizers) == 0 {
		return nil
	}
	if err := l.openFGA.Write(ctx, o.Status.StoreID, "", nil, keys(o.Status.ManagedTuples)); err != nil {
		return err
	}
	if err := l.openFGA.DeleteStore(ctx, o.Status.StoreID); err != nil {
		return err
	}
	return l.patch(ctx, o.Name, map[string]any{"metadata": map[string]any{"finalizers": nil}})
}

func (l *simpleOperator) patch(ctx context.Context, name string, fields map[string]any, subresources ...string) error {
	data, err := json.Marshal(fields)
	if err == nil {
		_, err = l.objects.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	}
	return err
}

func keys(tuples []corev1alpha1.Tuple) []*openfgav1.TupleKey {
	all := make([]*openfgav1.TupleKey, len(tuples))
	for i, t := range tuples {
		all[i] = &openfgav1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User}
	}
	return all
}
