package v1alpha1

// LongRecord is how many tuples a record lists one by one; longer ones are a [Ledger].
const LongRecord = 256

// EncodingZstd is a JSON list of tuples, compressed.
const EncodingZstd = "zstd"

// Ledger is a long record of tuples: so packed it costs little to change one among thousands.
type Ledger struct {
	// Revision counts the states of the record.
	Revision int64 `json:"revision"`
	// Encoding of data: zstd, of a JSON list of tuples.
	// +kubebuilder:validation:Enum=zstd
	Encoding string `json:"encoding"`
	// Data are the tuples.
	Data []byte `json:"data"`
	// Pending are further tuples that are, or are about to be, in the store.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Pending []Tuple `json:"pending,omitempty"`
}
