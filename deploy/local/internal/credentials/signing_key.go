package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/entail-dev/entail/deploy/local/internal/datadir"
)

// LoadSigningKey reads the key that signs service-account tokens, and makes
// one when the file is missing or damaged. It outlives restarts, and so do
// the tokens.
func LoadSigningKey(path string) (*ecdsa.PrivateKey, error) {
	if key, err := readSigningKey(path); err == nil {
		return key, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the service-account key: %w", err)
	}
	data, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return key, datadir.WriteFile(path, data)
}

func readSigningKey(path string) (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("reading key: no PEM in " + path)
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding key: %w", err)
	}
	return encodePEM("EC PRIVATE KEY", raw), nil
}
