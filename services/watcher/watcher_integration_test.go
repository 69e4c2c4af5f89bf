//go:build integration

package watcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

func TestEveryChangeIsPublished(t *testing.T) {
	b := newTestEnv(t)
	b.apply("before", "1")
	b.run()
	b.becomes()
	b.apply("with.dots.in-its-name", "1")
	b.apply("before", "2")
	b.becomes()
	if object := b.last("before").Change.Object; !bytes.Contains(object, []byte("# 2")) || bytes.Contains(object, []byte("managedFields")) {
		t.Errorf("object is %s", object)
	}
	b.remove("with.dots.in-its-name")
	b.becomes()
	if last := b.last("with.dots.in-its-name"); !last.Deleted || !bytes.Contains(last.Change.Object, []byte("# 1")) {
		t.Errorf("deletion is %+v", last.Change)
	}
}

func TestStatusChangeIsPublishedForKindsThatNeedIt(t *testing.T) {
	b := newTestEnv(t)
	b.apply("a", "1")
	b.run()
	b.becomes()
	patch := []byte(`{"status":{"storeId":"01JTESTTESTTESTTESTTESTTES"}}`)
	if _, err := b.stores().Patch(t.Context(), "a", "application/merge-patch+json", patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	b.becomes()
	if object := b.last("a").Change.Object; !bytes.Contains(object, []byte("01JTEST")) {
		t.Errorf("object is %s", object)
	}
}

func TestChangesDuringDowntimeArePublished(t *testing.T) {
	b := newTestEnv(t)
	for i := range 20 {
		b.apply(fmt.Sprint("s", i), "1")
	}
	stop := b.run()
	b.becomes()
	stop()
	b.remove("s3")
	b.remove("s4")
	b.apply("s4", "again")
	b.apply("s5", "2")
	b.apply("new", "1")
	uid := b.last("s4").Change.UID
	b.run()
	b.becomes()
	if b.last("s4").Change.UID == uid {
		t.Error("an object that was made again has the old one's UID")
	}
	if last := b.last("s3"); !last.Deleted || !bytes.Contains(last.Change.Object, []byte("# 1")) {
		t.Errorf("missed deletion is %+v", last.Change)
	}
}

func TestTooLargeObjectIsOmitted(t *testing.T) {
	b := newTestEnv(t)
	b.run()
	b.apply("large", strings.Repeat("x", 1_400_000))
	b.apply("small", "1")
	b.becomes()
	if c := b.last("large").Change; !c.Omitted || c.Object != nil {
		t.Errorf("large object is omitted: %v, with %d bytes", c.Omitted, len(c.Object))
	}
	b.apply("large", strings.Repeat("y", 1_400_000))
	b.becomes()
	b.apply("large", "small now")
	b.becomes()
	if c := b.last("large").Change; c.Omitted || !bytes.Contains(c.Object, []byte("small now")) {
		t.Errorf("object that became small is omitted: %v, %s", c.Omitted, c.Object)
	}
	b.remove("large")
	b.becomes()
}

func TestDefinitionCanBeRecreated(t *testing.T) {
	b := newTestEnv(t)
	b.apply("a", "1")
	crds := b.kube.DynamicClient(t).Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	restore := func() {
		root, err := devserver.CheckoutRoot()
		if err == nil {
			err = devserver.ApplyManifests(context.WithoutCancel(t.Context()), b.kube.AdminConfig(), os.DirFS(filepath.Join(root, "deploy")))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(restore)
	b.run()
	b.becomes()
	if err := crds.Delete(t.Context(), kinds.Stores().GroupResource.String(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, within, func() error {
		if marker, err := b.marker(kinds.Stores()); err != nil || marker.GetServed() {
			return fmt.Errorf("marker is %v, %w; want it to say that the kind is not served", marker, err)
		}
		return nil
	})
	if !b.last("a").Deleted {
		t.Error("an object whose definition is gone still lives on the stream")
	}
	if err := b.current(t.Context(), kinds.AuthorizationModels()); err != nil {
		t.Errorf("the other kind: %v", err)
	}
	restore()
	b.apply("a", "2")
	b.becomes()
}

func TestWatcherRefillsWipedStreams(t *testing.T) {
	b := newTestEnv(t)
	for i := range 10 {
		b.apply(fmt.Sprint("s", i), "1")
	}
	b.run()
	b.becomes()
	stream, err := b.js.Stream(t.Context(), topology.Changes)
	if err != nil {
		t.Fatal(err)
	}
	for _, wipe := range []func(context.Context) error{
		func(ctx context.Context) error { return stream.Purge(ctx) },
		func(ctx context.Context) error { return b.js.DeleteStream(ctx, topology.Changes) },
		func(ctx context.Context) error {
			return errors.Join(b.js.DeleteStream(ctx, topology.Changes), b.js.DeleteStream(ctx, topology.Sync))
		},
	} {
		if err := wipe(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.becomes()
		testenv.Eventually(t, within, func() error { // Without a barrier, no informer is complete again.
			_, _, err := b.p.LastBarrier(t.Context(), "local")
			return err
		})
	}
}

func TestServerOutageDoesNotLoseChange(t *testing.T) {
	b := newTestEnv(t)
	for i := range 10 {
		b.apply(fmt.Sprint("s", i), "1")
	}
	b.run()
	b.becomes()
	b.nats.Stop()
	b.apply("s1", "2")
	b.apply("s1", "3")
	b.remove("s2")
	b.apply("new", "1")
	b.nats.Start(t)
	b.becomes()
	b.kube.Kill()
	b.kube.Start(t)
	b.apply("s3", "2")
	b.remove("s4")
	b.becomes()
}

func TestTwoClustersShareStream(t *testing.T) {
	b := newTestEnv(t)
	for i := range 5 {
		b.apply(fmt.Sprint("s", i), "1")
	}
	b.run()
	west := watcher.Defaults()
	west.Cluster, west.LeaseName, west.LeaseNamespace = "west", "west", "default"
	b.runAs(west, b.kube.AdminConfig())
	both := func() error {
		for i := range 5 {
			for _, cluster := range []string{"local", west.Cluster} {
				key := store(fmt.Sprint("s", i))
				key.Cluster = cluster
				if last, err := b.p.LastChange(t.Context(), key); err != nil || last.Deleted {
					return fmt.Errorf("%s of %s: deleted %t, %w", key, cluster, last.Deleted, err)
				}
			}
		}
		return nil
	}
	testenv.Eventually(t, within, both)
	if err := b.js.DeleteStream(t.Context(), topology.Changes); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, within, both)
	b.remove("s4")
	testenv.Eventually(t, within, func() error {
		for _, cluster := range []string{"local", west.Cluster} {
			key := store("s4")
			key.Cluster = cluster
			if last, err := b.p.LastChange(t.Context(), key); err != nil || !last.Deleted {
				return fmt.Errorf("%s of %s still lives: %w", key, cluster, err)
			}
		}
		return nil
	})
}
