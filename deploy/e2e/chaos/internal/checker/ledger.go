package checker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recorded returns the tuples in an owner's record: the listed ones, and the packed ones of a large record.
func recorded(owner unstructured.Unstructured) ([]Tuple, error) {
	listed := append(tuplesOf(owner, "status", "managedTuples"), tuplesOf(owner, "status", "ledger", "pending")...)
	text := field(owner, "status", "ledger", "data")
	if text == "" {
		return listed, nil
	}
	packed, err := unpack(text)
	if err != nil {
		return nil, fmt.Errorf("%s: status.ledger: %w", owner.GetName(), err)
	}
	return append(listed, packed...), nil
}

func unpack(text string) ([]Tuple, error) {
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
	return tuplesIn(list), err
}
