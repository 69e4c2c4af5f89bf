package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/rpc"
)

const (
	// awaitTimeout bounds the wait for an object. It is shorter than the default timeout of clients.
	awaitTimeout  = 8 * time.Second
	awaitInterval = 100 * time.Millisecond
)

// awaitObject waits until OpenFGA and the informer include the present generation of an object, or its deletion. after
// is kind/name of the object; with an empty after, awaitObject returns at once.
func (s *Server) awaitObject(ctx context.Context, store, after string) error {
	if after == "" {
		return nil
	}
	kind, name, err := parseAwaitedObject(after)
	if err != nil {
		return err
	}
	if err := rpc.CheckRight(ctx, rpc.RequiredRight{Verb: "get", GroupResource: kind.GroupResource, Name: name}); err != nil {
		return err
	}
	release, err := s.waits.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	wait, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	for {
		missing, err := s.missingFor(wait, kind, name)
		if missing == "" && err == nil {
			// The Store names the model that includes the object.
			missing, err = s.missingInView(wait, kinds.Stores(), store)
		}
		switch {
		case missing == "" && err == nil:
			return nil
		case err != nil && wait.Err() == nil:
			return err
		case !backoff.Sleep(wait, awaitInterval):
			return connect.NewError(connect.CodeDeadlineExceeded,
				fmt.Errorf("the answer is undecided: %s %s is not in it after %s: %s", kind.Kind, name, awaitTimeout, missing))
		}
	}
}

// parseAwaitedObject parses kind/name of an object that declares tuples.
func parseAwaitedObject(after string) (kinds.Kind, string, error) {
	prefix, name, _ := strings.Cut(after, "/")
	for _, kind := range []kinds.Kind{kinds.Stores(), kinds.AuthorizationModels()} {
		if (strings.EqualFold(prefix, kind.Kind) || strings.EqualFold(prefix, kind.Resource)) && name != "" && !strings.Contains(name, "/") {
			return kind, name, nil
		}
	}
	return kinds.Kind{}, "", rpc.InvalidError("after %q is not store/NAME or authorizationmodel/NAME", after)
}

// missingFor returns why an answer does not include the present state of an object yet, or "". It returns an error for an
// object that neither exists nor was deleted.
func (s *Server) missingFor(ctx context.Context, kind kinds.Kind, name string) (string, error) {
	now, err := s.cfg.Kube.Get(ctx, kind, "", name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return s.missingDeletion(ctx, kind, name)
	case err != nil:
		return "", err
	}
	if missing := unreadyMessage(now); missing != "" {
		return missing, nil
	}
	return s.missingInView(ctx, kind, name)
}

func (s *Server) missingDeletion(ctx context.Context, kind kinds.Kind, name string) (string, error) {
	live, gone := s.findInView(kind, name)
	switch {
	case live != nil:
		return "its deletion has not arrived at tuple-sync", nil
	case gone:
		return "", nil
	}
	missing := rpc.NotFoundError("there is no %s %q, and none was deleted", kind.Kind, name)
	return "", rpc.AddNameSuggestions(ctx, missing, kind.GroupResource, name, func() []string { return s.namesInView(kind) })
}

// missingInView returns why the informer does not hold the present version of an object, or "". It returns "" for an
// object that does not exist, because the question about it fails later.
func (s *Server) missingInView(ctx context.Context, kind kinds.Kind, name string) (string, error) {
	now, err := s.cfg.Kube.Get(ctx, kind, "", name)
	if errors.Is(err, kube.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	live, _ := s.findInView(kind, name)
	if live != nil && live.UID == now.UID {
		if order, err := resourceversion.CompareResourceVersion(live.ResourceVersion, now.ResourceVersion); err == nil && order >= 0 {
			return "", nil
		}
	}
	return "its present version has not arrived at tuple-sync", nil
}

// findInView returns the version of an object in the informer, or nil. gone reports whether the informer holds its
// deletion.
func (s *Server) findInView(kind kinds.Kind, name string) (live *event.Change, gone bool) {
	key := event.Key{Cluster: s.cfg.Cluster, GroupResource: kind.GroupResource, Name: name}
	if o, ok := s.cfg.State.Stores.Get(key); ok {
		return &o.Change, false
	}
	if o, ok := s.cfg.State.Models.Get(key); ok {
		return &o.Change, false
	}
	return nil, len(s.cfg.State.Stores.Tombstones(key))+len(s.cfg.State.Models.Tombstones(key)) > 0
}

// namesInView returns the names of the objects of a kind in this cluster.
func (s *Server) namesInView(kind kinds.Kind) (names []string) {
	var keys []event.Key
	for _, o := range s.cfg.State.Stores.All() {
		keys = append(keys, o.Key)
	}
	for _, o := range s.cfg.State.Models.All() {
		keys = append(keys, o.Key)
	}
	for _, key := range keys {
		if key.Cluster == s.cfg.Cluster && key.GroupResource == kind.GroupResource {
			names = append(names, key.Name)
		}
	}
	return names
}

// unreadyMessage returns the reason why an object is not Ready at its present generation, or "".
func unreadyMessage(o event.Change) string {
	var state struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Status   struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(o.Object, &state); err != nil {
		return err.Error()
	}
	ready := meta.FindStatusCondition(state.Status.Conditions, corev1alpha1.Ready)
	switch {
	case state.Metadata.DeletionTimestamp != nil:
		return "it is being deleted"
	case ready == nil || ready.ObservedGeneration != state.Metadata.Generation:
		return "it is being applied"
	case ready.Status != metav1.ConditionTrue:
		return "it is not Ready: " + ready.Message
	}
	return ""
}
