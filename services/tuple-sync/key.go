package tuplesync

import (
	"unique"

	"github.com/entail-dev/entail/services/tuple-sync/ledger"
	"github.com/entail-dev/entail/services/tuple-sync/mirror"
)

// Key is what is reconciled as one: hundreds of thousands are kept, and compared often, so it is no larger than a pointer. It is
// a [ledger.Key] or a [mirror.Key].
type Key struct{ is unique.Handle[any] }

func ofLedger(k ledger.Key) Key { return Key{unique.Make[any](k)} }
func ofMirror(k mirror.Key) Key { return Key{unique.Make[any](k)} }

// ledger is the key of the ledger, unless it is one of the mirror.
func (k Key) ledger() ledger.Key {
	of, _ := k.is.Value().(ledger.Key)
	return of
}

// mirror is the key of the mirror, if it is one.
func (k Key) mirror() (of mirror.Key, is bool) {
	of, is = k.is.Value().(mirror.Key)
	return of, is
}

// String is for people.
func (k Key) String() string {
	if of, is := k.mirror(); is {
		return of.String()
	}
	return k.ledger().String()
}

// MarshalText is for logs.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
