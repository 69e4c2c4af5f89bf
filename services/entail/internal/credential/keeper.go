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

	"github.com/entail-dev/entail/services/internal/permission"
	"github.com/entail-dev/entail/services/internal/rbac"
)

// maxFile bounds one file that is read.
const maxFile = 1 << 20

// Names are of all that a set holds.
func Names() []string {
	names := []string{"ca", "openfga-client"}
	for name := range (Options{OpenSearch: true}).servers() {
		names = append(names, name)
	}
	for _, user := range permission.Names() {
		names = append(names, "nats-"+user)
	}
	return names
}

// Dir keeps a set as files, in a folder for each name.
type Dir string

// Load reads all files.
func (d Dir) Load(context.Context) (Set, error) {
	set := Set{}
	for _, name := range Names() {
		entries, err := os.ReadDir(filepath.Join(string(d), name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		set[name] = map[string][]byte{}
		for _, entry := range entries {
			if set[name][entry.Name()], err = read(filepath.Join(string(d), name, entry.Name())); err != nil {
				return nil, fmt.Errorf("reading credentials: %w", err)
			}
		}
	}
	return set, nil
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// Save writes files that the owner alone may read, or the group too where the server is another user. None is ever half written.
func (d Dir) Save(_ context.Context, name string, files map[string][]byte) error {
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
		// Beside the folder: what is in it is the set's.
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

// Secrets keeps a set in the namespace of services, as the Secret entail-ca and others of its names.
type Secrets struct {
	client corev1client.SecretInterface
	read   map[string]*corev1.Secret
}

// NewSecrets makes a keeper.
func NewSecrets(client corev1client.SecretsGetter) *Secrets {
	return &Secrets{client: client.Secrets(rbac.Namespace), read: map[string]*corev1.Secret{}}
}

// Load reads those Secrets that are there.
func (s *Secrets) Load(ctx context.Context) (Set, error) {
	set := Set{}
	for _, name := range Names() {
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

// Save makes a Secret, or changes the one that was read: if somebody else did meanwhile, it fails.
func (s *Secrets) Save(ctx context.Context, name string, files map[string][]byte) error {
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

// secretName says of the authority whose it is.
func secretName(name string) string {
	if name == "ca" {
		return "entail-ca"
	}
	return name
}
