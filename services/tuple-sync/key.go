package tuplesync

import (
	"unique"

	"github.com/entail-dev/entail/services/tuple-sync/declared"
	"github.com/entail-dev/entail/services/tuple-sync/derived"
)

// Key is the unit of reconciliation: a [declared.Key] or a [derived.Key]. It is as small as a pointer, because the queue
// holds and compares hundreds of thousands.
type Key struct{ is unique.Handle[any] }

func fromDeclared(k declared.Key) Key { return Key{unique.Make[any](k)} }
func fromDerived(k derived.Key) Key   { return Key{unique.Make[any](k)} }

// declaredKey returns the key of declared tuples, or the zero value for a key of derived ones.
func (k Key) declaredKey() declared.Key {
	of, _ := k.is.Value().(declared.Key)
	return of
}

// derivedKey returns the key of derived tuples, and whether it is one.
func (k Key) derivedKey() (of derived.Key, is bool) {
	of, is = k.is.Value().(derived.Key)
	return of, is
}

// String returns a description for people.
func (k Key) String() string {
	if of, is := k.derivedKey(); is {
		return of.String()
	}
	return k.declaredKey().String()
}

// MarshalText returns [Key.String], for logs.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
