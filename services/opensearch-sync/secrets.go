package opensearchsync

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/topology"
)

// secretReader is the part of the Kubernetes client that reads Secrets.
type secretReader interface {
	Get(ctx context.Context, kind kinds.Kind, namespace, name string) (event.Change, error)
}

// secretValueReader reads values of Secrets. The values go only to OpenSearch, never into the informer, a log, an error
// or a status.
type secretValueReader struct{ api secretReader }

// Reasons why a Secret gives no value.
var (
	errNoSecret        = errors.New("there is no such Secret")
	errSecretForbidden = errors.New("opensearch-sync may not read it")
)

// getSecret reads one Secret. The error wraps errNoSecret or errSecretForbidden where these apply.
func (s secretValueReader) getSecret(ctx context.Context, namespace, name string) (secret corev1.Secret, err error) {
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 { // No Secret can have such a name.
		return secret, fmt.Errorf("Secret %s/%s: %w", namespace, name, errNoSecret) //nolint:staticcheck // It is the name of the kind.
	}
	kind := kinds.Secrets()
	kind.MetadataOnly, kind.ReferencedOnly = false, false
	change, err := s.api.Get(ctx, kind, namespace, name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return secret, fmt.Errorf("Secret %s/%s: %w", namespace, name, errNoSecret) //nolint:staticcheck // It is the name of the kind.
	case errors.Is(err, kube.ErrForbidden):
		return secret, fmt.Errorf("Secret %s/%s: %w: %s", namespace, name, errSecretForbidden, secretGrantCommand(namespace)) //nolint:staticcheck // As above.
	case err != nil:
		return secret, err
	}
	if err := change.Decode(&secret); err != nil {
		return secret, fmt.Errorf("Secret %s/%s cannot be read", namespace, name) //nolint:staticcheck // An error of decoding may quote values.
	}
	return secret, nil
}

// secretGrantCommand returns the command that grants the right to read Secrets of a namespace.
func secretGrantCommand(namespace string) string {
	return fmt.Sprintf("%s; to have the watcher follow them, see docs/operate/opensearch.md",
		rbac.ServiceAccount{Service: topology.OpensearchSync}.BindSecretsCommand(namespace))
}
