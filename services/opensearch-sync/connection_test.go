package opensearchsync

import (
	"bytes"
	"testing"

	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
)

func TestWhatStandsForPasswordsIsKeyedByCredentialsAndCluster(t *testing.T) {
	certificate := search.Settings{Certificate: []byte("c"), Key: []byte("k")}
	password := search.Settings{User: "admin", Password: "k"}
	of := func(uid string, s search.Settings) []byte {
		key, err := tagKey(uid, s)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	keys := [][]byte{of("u", certificate), of("v", certificate), of("u", password)}
	for i, key := range keys {
		if len(key) != 32 {
			t.Errorf("key %d has %d bytes", i, len(key))
		}
		for j := range keys[:i] {
			if bytes.Equal(key, keys[j]) {
				t.Errorf("keys %d and %d are the same", j, i)
			}
		}
	}
	if renewed := (search.Settings{Certificate: []byte("d"), Key: []byte("k")}); !bytes.Equal(of("u", renewed), keys[0]) {
		t.Error("a new certificate of the same key has another")
	}
}
