package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// RemovedTuples lists the tuples that tuple-sync removed from an OpenFGA store, the latest of them if there is no room for all.
type RemovedTuples struct {
	// StoreID is OpenFGA's id of the store.
	StoreID string `json:"storeId"`
	// Since is when the list begins.
	Since metav1.Time `json:"since"`
	// Truncated means that earlier removals are missing.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
	// Encoding of data: zstd, of a JSON list of tuples with the times when they were written and removed.
	// +kubebuilder:validation:Enum=zstd
	// +optional
	Encoding string `json:"encoding,omitempty"`
	// Data are the tuples.
	// +optional
	Data []byte `json:"data,omitempty"`
}
