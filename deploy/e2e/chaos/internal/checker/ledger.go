package checker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recordedTuples returns the tuples in an owner's record: the listed ones, and the packed ones of a large record.
func recordedTuples(owner unstructured.Unstructured) ([]Tuple, error) {
	listed := append(tuplesAtPath(owner, "status", "managedTuples"), tuplesAtPath(owner, "status", "ledger", "pending")...)
	text := textField(owner, "status", "ledger", "data")
	if text == "" {
		return listed, nil
	}
	packed, err := unpackTuples(text)
	if err != nil {
		return nil, fmt.Errorf("%s: status.ledger: %w", owner.GetName(), err)
	}
	return append(listed, packed...), nil
}

func unpackTuples(text string) ([]Tuple, error) {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	data, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, err
	}
	var list []any
	err = json.Unmarshal(data, &list)
	return parseTuples(list), err
}
