package topology

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Revision names a place in a life of [Changes].
func Revision(sequence uint64, incarnation string) string {
	return fmt.Sprintf("%d@%s", sequence, incarnation)
}

// ParseRevision reads what [Revision] wrote. The life is given by when it began.
func ParseRevision(revision string) (sequence uint64, began time.Time, err error) {
	number, incarnation, _ := strings.Cut(revision, "@")
	if sequence, err = strconv.ParseUint(number, 10, 64); err == nil {
		began, err = time.Parse(time.RFC3339Nano, incarnation)
	}
	if err != nil {
		err = fmt.Errorf("%q is not a revision that an answer named: %w", revision, err)
	}
	return sequence, began, err
}
