package topology

// Headers of changes. They repeat the fields that the watcher compares with the API server, so that a comparison need
// not read bodies.
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

// Headers of replays and dead letters.
const (
	// ReplayHeader marks a state that is published again, so that services process it again.
	ReplayHeader = "Entail-Replay"
	// ReasonHeader holds the reason why a message became a dead letter.
	ReasonHeader = "Entail-Reason"
	// SubjectHeader holds the original subject of a dead letter.
	SubjectHeader = "Entail-Subject"
	// SequenceHeader holds the original sequence of a dead letter in ENTAIL_CHANGES.
	SequenceHeader = "Entail-Sequence"
	// ServiceHeader holds the service that gave up the message.
	ServiceHeader = "Entail-Service"
)
