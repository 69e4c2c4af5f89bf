package topology

// Headers of changes. They repeat the fields that a sweep compares, so that the auditor and searches read no bodies.
const (
	// EpochHeader holds the epoch of the change.
	EpochHeader = "Entail-Epoch"
	// UIDHeader holds the UID of the object.
	UIDHeader = "Entail-Uid"
	// VersionHeader holds the resourceVersion of the object.
	VersionHeader = "Entail-Resource-Version"
	// OperationHeader holds [Upsert] or [Delete].
	OperationHeader = "Entail-Operation"

	// Upsert and Delete are the values of [OperationHeader].
	Upsert = "upsert"
	Delete = "delete"
)

// Headers of messages.
const (
	// ReplayHeader marks a state that is published again, so that services process it once more.
	ReplayHeader = "Entail-Replay"
	// ReasonHeader holds the reason why a message became a dead letter.
	ReasonHeader = "Entail-Reason"
	// SubjectHeader holds the original subject of a dead letter.
	SubjectHeader = "Entail-Subject"
	// SequenceHeader holds its original sequence in ENTAIL_CHANGES.
	SequenceHeader = "Entail-Sequence"
	// ServiceHeader holds the service that gave it up.
	ServiceHeader = "Entail-Service"
)
