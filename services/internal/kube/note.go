package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/truncate"
)

const (
	eventsPerSecond = 5
	eventBurst      = 50
	maxMessage      = 1024
	maxPrefix       = 200
)

// RecordEvent records an Event about obj. It drops Events beyond eventsPerSecond. Callers should only log the error.
func (c *Client) RecordEvent(ctx context.Context, obj event.Change, note condition.EventContent) error {
	if !c.events.TryAccept() {
		return nil
	}
	namespace := obj.Key.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	kind := corev1.EventTypeNormal
	if note.Warning {
		kind = corev1.EventTypeWarning
	}
	now := metav1.NewTime(time.Now())
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: obj.Key.Name[:min(len(obj.Key.Name), maxPrefix)] + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: apiVersion(obj.Key.Group, obj.Version), Kind: obj.Kind,
			Namespace: obj.Key.Namespace, Name: obj.Key.Name, UID: types.UID(obj.UID), ResourceVersion: obj.ResourceVersion,
		},
		Type: kind, Reason: note.Reason, Message: truncate.Text(note.Message, maxMessage),
		Source: corev1.EventSource{Component: c.manager}, ReportingController: c.manager,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
	if err != nil {
		return fmt.Errorf("encoding event about %s: %w", obj.Key, err)
	}
	events := c.api.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(namespace)
	if _, err := events.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldManager: c.manager}); err != nil {
		return fmt.Errorf("recording event %s about %s: %w", note.Reason, obj.Key, classifyError(err))
	}
	return nil
}
