package tuplesync

import (
	"github.com/entail-dev/entail/services/tuple-sync/ledger"
	"github.com/entail-dev/entail/services/tuple-sync/mirror"
)

// Key is what is reconciled as one. Which field is set says whose it is.
type Key struct {
	Ledger ledger.Key
	Mirror mirror.Key
}

// String is for logs.
func (k Key) String() string {
	if k.Mirror != (mirror.Key{}) {
		return k.Mirror.String()
	}
	return k.Ledger.String()
}
