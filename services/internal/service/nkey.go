package service

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

var errSeedReplaced = errors.New("the seed was replaced; the next attempt uses the new one")

// nkeyOption returns an option that authenticates with the seed in the file. It reads the file at each connect.
func nkeyOption(file string) (nats.Option, error) {
	if _, err := readNKeySeed(file); err != nil {
		return nil, err
	}
	return func(o *nats.Options) error {
		pair, err := readNKeySeed(file)
		if err != nil {
			return err
		}
		if o.Nkey, err = pair.PublicKey(); err != nil {
			return err
		}
		public, conn := o.Nkey, atomic.Pointer[nats.Conn]{}
		o.ConnectedCB = func(c *nats.Conn) { conn.Store(c) }
		o.SignatureCB = func(nonce []byte) ([]byte, error) {
			pair, err := readNKeySeed(file)
			if err != nil {
				return nil, err
			}
			defer pair.Wipe()
			now, err := pair.PublicKey()
			if err != nil {
				return nil, err
			}
			// The client has already sent the old public key, and holds the lock of the connection.
			if c := conn.Load(); c != nil && now != public {
				public, c.Opts.Nkey = now, now
				return nil, errSeedReplaced
			}
			return pair.Sign(nonce)
		}
		return nil
	}, nil
}

func readNKeySeed(file string) (nkeys.KeyPair, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading NATS seed: %w", err)
	}
	defer clear(text)
	pair, err := nkeys.ParseDecoratedNKey(bytes.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("reading NATS seed of %s: %w", file, err)
	}
	return pair, nil
}
