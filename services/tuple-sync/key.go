package tuplesync

import "github.com/entail-dev/entail/services/tuple-sync/ledger"

// Key is what is reconciled as one. Which field is set says whose it is.
type Key struct {
	Ledger ledger.Key
}

// String is for logs.
func (k Key) String() string { return k.Ledger.String() }
