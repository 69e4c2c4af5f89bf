package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LongRecord is the largest number of tuples that a record lists one by one. A longer record is a [Ledger].
const LongRecord = 256

// EncodingZstd is the encoding of a JSON list of tuples that is compressed with zstd.
const EncodingZstd = "zstd"

// Ledger is a long record of tuples. It is compressed, and a change of one tuple does not rewrite all others.
type Ledger struct {
	// revision counts the versions of the record.
	Revision int64 `json:"revision"`
	// encoding is the encoding of data: zstd, of a JSON list of tuples.
	// +kubebuilder:validation:Enum=zstd
	Encoding string `json:"encoding"`
	// data holds the tuples.
	Data []byte `json:"data"`
	// pending lists further tuples that are in the store, or may be, at most 256.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Pending []Tuple `json:"pending,omitempty"`
}

// RemovedTuples lists the tuples that tuple-sync removed from an OpenFGA store. If there is no room for all, it holds
// the newest.
type RemovedTuples struct {
	// storeId is the id of the store in OpenFGA.
	StoreID string `json:"storeId"`
	// since is the time at which the list begins.
	Since metav1.Time `json:"since"`
	// truncated reports that earlier removals are missing.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
	// encoding is the encoding of data: zstd, of a JSON list of tuples with the times when they were written and
	// removed.
	// +kubebuilder:validation:Enum=zstd
	// +optional
	Encoding string `json:"encoding,omitempty"`
	// data holds the tuples.
	// +optional
	Data []byte `json:"data,omitempty"`
}
