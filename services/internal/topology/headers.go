package topology

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
