package search

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"syscall"
)

// Classes of reasons why a server gives no answer. They quote no text of the server.
const (
	CertificateUnknown = "CertificateUnknown"
	Refused            = "Refused"
	TimedOut           = "TimedOut"
	Unauthorized       = "Unauthorized"
	AddressForbidden   = "AddressForbidden"
	NameUnknown        = "NameUnknown"
	Unavailable        = "Unavailable"
)

// errAddress means that connections to the address are forbidden.
var errAddress = errors.New("opensearch-sync may not connect to this address")

// ClassifyError returns the class of an error, and a sentence for users.
func ClassifyError(err error) (class, sentence string) {
	var (
		answered    *busyError
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
		timeout     net.Error
	)
	switch {
	case errors.As(err, &answered):
		if answered.code == http.StatusUnauthorized || answered.code == http.StatusForbidden {
			return Unauthorized, "it refuses the credentials of the connection"
		}
		return Unavailable, "it reports that it cannot answer now"
	case errors.Is(err, errAddress):
		return AddressForbidden, "its address is one of this machine, its link or the API server"
	case errors.As(err, &certificate):
		return CertificateUnknown, "the CA of the connection has not issued its certificate, or not for this name"
	case errors.As(err, &name):
		return NameUnknown, "its name has no address"
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused, "nothing listens at its address"
	case errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut, "the time for an answer has passed"
	}
	return Unavailable, "the log of opensearch-sync says why"
}
