package search

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/entail-dev/entail/services/internal/fault"
)

func TestClassNamesWhyAServerGivesNoAnswer(t *testing.T) {
	for want, err := range map[string]error{
		CertificateUnknown: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		Refused:            &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		TimedOut:           context.DeadlineExceeded,
		NameUnknown:        &net.DNSError{Err: "no such host"},
		AddressForbidden:   fmt.Errorf("127.0.0.1 is an address of this machine: %w", errAddress),
		Unauthorized:       refusalError(http.StatusUnauthorized, []byte("Unauthorized: hunter2")),
		Unavailable:        errors.New("somebody's own words"),
	} {
		class, sentence := Class(fault.Unavailable(fmt.Errorf("OpenSearch gives no answer: %w", err)))
		if class != want || strings.Contains(sentence, "words") || strings.Contains(sentence, "hunter2") {
			t.Errorf("got %s: %q, want %s", class, sentence, want)
		}
	}
}
