package topology

// Headers of messages.
const (
	// ReplayHeader marks a state that is published again, so that it is processed anew.
	ReplayHeader = "Entail-Replay"
	// ReasonHeader says why a message became a dead letter.
	ReasonHeader = "Entail-Reason"
	// SubjectHeader is the subject of the message before it became a dead letter.
	SubjectHeader = "Entail-Subject"
	// SequenceHeader is its sequence in ENTAIL_CHANGES.
	SequenceHeader = "Entail-Sequence"
	// ServiceHeader is the service that gave it up.
	ServiceHeader = "Entail-Service"
)
