package credential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/entail-dev/entail/services/internal/natsauth"
	"github.com/entail-dev/entail/services/internal/rbac"
)

// maxFile bounds one file, in bytes. The rest of a larger file is ignored.
const maxFile = 1 << 20

// EntryNames returns the names of all entries that a [Set] may hold.
func EntryNames() []string {
	names := []string{"ca", "openfga-client"}
	for name := range (Options{OpenSearch: true}).serverHosts() {
		names = append(names, name)
	}
	for _, user := range natsauth.UserNames() {
		names = append(names, "nats-"+user)
	}
	return names
}

// DirKeeper is a [Keeper] in a directory, with one folder for each name.
type DirKeeper string

// Load reads the files of all names.
func (d DirKeeper) Load(context.Context) (Set, error) {
	set := Set{}
	for _, name := range EntryNames() {
		entries, err := os.ReadDir(filepath.Join(string(d), name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		set[name] = map[string][]byte{}
		for _, entry := range entries {
			if set[name][entry.Name()], err = readFile(filepath.Join(string(d), name, entry.Name())); err != nil {
				return nil, fmt.Errorf("reading credentials: %w", err)
			}
		}
	}
	return set, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// Save writes files that only their owner may read; for the OpenSearch server, its group may, too. A rename replaces
// each file, so a file is never half written.
func (d DirKeeper) Save(_ context.Context, name string, files map[string][]byte) error {
	dir, group := filepath.Join(string(d), name), os.FileMode(0)
	if name == openSearchServer {
		group = 0o050
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700|group)
	}
	if err != nil {
		return fmt.Errorf("writing credentials: %w", err)
	}
	for file, data := range files {
		// The draft is outside the folder, because Load reads all files in it.
		path := filepath.Join(string(d), "."+name+"-"+file)
		err := os.WriteFile(path, data, 0o600)
		if err == nil {
			err = os.Chmod(path, 0o600|group&0o040)
		}
		if err == nil {
			err = os.Rename(path, filepath.Join(dir, file))
		}
		if err != nil {
			return fmt.Errorf("writing credentials: %w", err)
		}
	}
	return nil
}

// SecretKeeper is a [Keeper] in the namespace of services. The authority is Secret entail-ca; the other Secrets have the
// names of their entries.
type SecretKeeper struct {
	client corev1client.SecretInterface
	read   map[string]*corev1.Secret
}

// NewSecretKeeper returns a keeper that uses client.
func NewSecretKeeper(client corev1client.SecretsGetter) *SecretKeeper {
	return &SecretKeeper{client: client.Secrets(rbac.Namespace), read: map[string]*corev1.Secret{}}
}

// Load reads the Secrets that exist.
func (s *SecretKeeper) Load(ctx context.Context) (Set, error) {
	set := Set{}
	for _, name := range EntryNames() {
		secret, err := s.client.Get(ctx, secretName(name), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		set[name], s.read[name] = secret.Data, secret
	}
	return set, nil
}

// Save creates a Secret, or updates the one that Load read. It fails if the Secret changed since.
func (s *SecretKeeper) Save(ctx context.Context, name string, files map[string][]byte) error {
	var err error
	if secret := s.read[name].DeepCopy(); secret != nil {
		secret.Data = files
		_, err = s.client.Update(ctx, secret, metav1.UpdateOptions{})
	} else {
		labels := map[string]string{"app.kubernetes.io/part-of": "entail"}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName(name), Labels: labels}, Data: files}
		_, err = s.client.Create(ctx, secret, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing credentials: %w", err)
	}
	return nil
}

// secretName returns the name of the Secret. It adds a prefix for the authority, because "ca" does not say to which
// software it belongs.
func secretName(name string) string {
	if name == "ca" {
		return "entail-ca"
	}
	return name
}
