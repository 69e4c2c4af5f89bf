package testenv

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CreateNamespace creates a namespace unless it exists.
func (b *Env) CreateNamespace(name string) {
	b.T.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := b.Typed.CoreV1().Namespaces().Create(b.T.Context(), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		b.T.Fatal(err)
	}
}

// DeleteNamespace starts the deletion of a namespace and of all objects in it.
func (b *Env) DeleteNamespace(name string) {
	b.T.Helper()
	if err := b.Typed.CoreV1().Namespaces().Delete(b.T.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.T.Fatal(err)
	}
}

// AwaitNamespaceGone waits until a namespace does not exist.
func (b *Env) AwaitNamespaceGone(name string) {
	b.T.Helper()
	Eventually(b.T, objectTimeout, func() error {
		namespace, err := b.Typed.CoreV1().Namespaces().Get(b.T.Context(), name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("namespace %s still exists: %+v", name, namespace.Status)
		}
		return ignoreNotFound(err)
	})
}
