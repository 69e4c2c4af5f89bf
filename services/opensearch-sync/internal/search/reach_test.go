package search

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/entail-dev/entail/services/internal/fault"
)

func TestClassifyErrorNamesCause(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"an unknown authority":           {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, CertificateUnknown},
		"another name":                   {&tls.CertificateVerificationError{Err: x509.HostnameError{}}, CertificateUnknown},
		"a closed port":                  {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, Refused},
		"the deadline of the call":       {context.DeadlineExceeded, TimedOut},
		"the deadline of the connection": {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, TimedOut},
		"a broken connection":            {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, Unavailable},
		"no address":                     {&net.DNSError{Err: "no such host"}, NameUnknown},
		"an address of this machine":     {fmt.Errorf("127.0.0.1 is an address of this machine: %w", errAddress), AddressForbidden},
		"wrong credentials":              {answerToError(http.StatusUnauthorized, []byte("Unauthorized: hunter2")), Unauthorized},
		"few rights":                     {answerToError(http.StatusForbidden, []byte(`{"message":"No permission to access REST API: hunter2"}`)), Unauthorized},
		"an overload":                    {answerToError(http.StatusServiceUnavailable, []byte("hunter2")), Unavailable},
		"another error":                  {errors.New("somebody's own words"), Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			class, sentence := ClassifyError(fault.Unavailable(fmt.Errorf("OpenSearch does not answer: %w", c.err)))
			if class != c.want || strings.Contains(sentence, "words") || strings.Contains(sentence, "hunter2") {
				t.Errorf("got %s: %q, want %s", class, sentence, c.want)
			}
		})
	}
}
