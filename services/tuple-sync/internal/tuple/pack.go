package tuple

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// maxUnpacked bounds an unpacked list, in bytes. No object can declare more.
const maxUnpacked = 4 << 20

var errUnpacked = errors.New("the list takes more than 4 MiB")

// PackTuples compresses a list of tuples. Equal lists may have different packed bytes.
func PackTuples(tuples []Tuple) ([]byte, error) {
	list := make([]corev1alpha1.Tuple, len(tuples))
	for i, t := range tuples {
		list[i] = t.ToDeclared()
	}
	return PackList(list)
}

// PackList compresses the JSON of a list.
func PackList[T any](list []T) ([]byte, error) {
	text, err := json.Marshal(list)
	if err == nil && len(text) > maxUnpacked {
		err = errUnpacked
	}
	if err != nil {
		return nil, fmt.Errorf("packing %d tuples: %w", len(list), err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("packing %d tuples: %w", len(list), err)
	}
	return encoder.EncodeAll(text, nil), nil
}

// UnpackTuples reads a packed list of tuples.
func UnpackTuples(packed []byte) ([]Tuple, error) {
	list, err := UnpackList[corev1alpha1.Tuple](packed)
	if err != nil {
		return nil, err
	}
	return ParseDeclaredList(list), nil
}

// UnpackList reads a list packed by [PackList]. It bounds memory, because a user may forge the list.
func UnpackList[T any](packed []byte) ([]T, error) {
	decoder, err := zstd.NewReader(bytes.NewReader(packed),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("unpacking tuples: %w", err)
	}
	defer decoder.Close()
	text, err := io.ReadAll(io.LimitReader(decoder, maxUnpacked+1))
	if err == nil && len(text) > maxUnpacked {
		err = errUnpacked
	}
	var list []T
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking tuples: %w", err)
	}
	return list, nil
}

// Compare orders tuples.
func (t Tuple) Compare(other Tuple) int {
	if c := t.ID.Compare(other.ID); c != 0 {
		return c
	}
	return strings.Compare(t.Condition+"\x00"+t.Context, other.Condition+"\x00"+other.Context)
}

// SortedUnique returns a sorted copy without duplicates.
func SortedUnique(tuples []Tuple) []Tuple {
	tuples = slices.Clone(tuples)
	slices.SortFunc(tuples, Tuple.Compare)
	return slices.Compact(tuples)
}
