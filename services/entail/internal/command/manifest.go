package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/entail-dev/entail/services/entail/internal/input"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// maxManifest bounds a file of objects, in bytes.
const maxManifest = 4 << 20

// objectPointer constrains P to the pointer of an API type.
type objectPointer[T any] interface {
	*T
	metav1.Object
	runtime.Object
}

// errNotNamed is the error for an object of another kind or without a name.
var errNotNamed = errors.New("is not a named")

// readManifestObjects reads the objects of one kind from all documents of a file. what names the content in errors.
func readManifestObjects[T any, P objectPointer[T]](in io.Reader, file string, kind kinds.Kind, what string) ([]T, error) {
	if file == "" {
		return nil, nil
	}
	data, err := input.ReadFileOrStdin(in, file, maxManifest+1)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("read %s: more than %d bytes", what, maxManifest)
	}
	var objects []T
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
	for n := 1; ; n++ {
		var document runtime.RawExtension
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("document %d of the %s: %w", n, what, err)
		}
		if len(document.Raw) == 0 {
			continue // An empty document.
		}
		some, err := parseManifestDocument[T, P](document.Raw, kind.Kind)
		if err != nil {
			return nil, fmt.Errorf("document %d of the %s: %w", n, what, err)
		}
		objects = append(objects, some...)
	}
}

// parseManifestDocument reads an object, or the objects of a list.
func parseManifestDocument[T any, P objectPointer[T]](data []byte, want string) ([]T, error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	if list.Kind != "List" && list.Kind != want+"List" {
		one, err := parseNamedObject[T, P](data, "", want)
		return []T{one}, err
	}
	objects := make([]T, len(list.Items))
	for i, item := range list.Items {
		var err error
		if objects[i], err = parseNamedObject[T, P](item, strings.TrimSuffix(list.Kind, "List"), want); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return objects, nil
}

// parseNamedObject reads an object. An item of a typed list may omit its kind.
func parseNamedObject[T any, P objectPointer[T]](data []byte, kind, want string) (T, error) {
	var object T
	if err := json.Unmarshal(data, &object); err != nil {
		return object, err
	}
	own := P(&object).GetObjectKind().GroupVersionKind().Kind
	if cmp.Or(own, kind) != want || P(&object).GetName() == "" {
		return object, fmt.Errorf("a %q named %q %w %s", own, P(&object).GetName(), errNotNamed, want)
	}
	return object, nil
}
