// Package dns answers what pods ask for: the addresses of Services, and of the pods
// behind those that have no address of their own.
package dns

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// seconds is how long an answer may be believed.
	seconds = 5
	// maxAddresses fit into a datagram of DNS, which has no more than 512 bytes.
	maxAddresses = 10
)

// AddressResolver knows the addresses of a Service, or of one host behind it when host is not empty.
type AddressResolver interface {
	Addresses(namespace, service, host string) (addresses []netip.Addr, known bool)
}

// AnswerQuery is what a datagram is answered with: addresses of the kind that is asked for, none of a name that has only
// others, and that there is no such name. Names that are not in the domain do not exist, either.
func AnswerQuery(query []byte, domain string, names AddressResolver) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil {
		return nil, fmt.Errorf("reading a query: %w", err)
	}
	if header.Response {
		return nil, fmt.Errorf("query %d is an answer", header.ID)
	}
	question, err := parser.Question()
	if err != nil {
		return nil, fmt.Errorf("reading the question of query %d: %w", header.ID, err)
	}
	addresses, known := resolveQuestion(question, domain, names)
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{question},
	}
	if !known {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, address := range addresses {
		if body := newRecord(address); len(reply.Answers) < maxAddresses && recordType(address) == question.Type {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: dnsmessage.ClassINET, TTL: seconds},
				Body:   body,
			})
		}
	}
	return reply.Pack()
}

// resolveQuestion splits SERVICE.NAMESPACE.svc.DOMAIN, which may have a HOST in front.
func resolveQuestion(question dnsmessage.Question, domain string, names AddressResolver) (addresses []netip.Addr, known bool) {
	name, ours := strings.CutSuffix(strings.ToLower(question.Name.String()), ".svc."+domain+".")
	labels := strings.Split(name, ".")
	switch {
	case !ours || question.Class != dnsmessage.ClassINET:
		return nil, false
	case len(labels) == 2:
		return names.Addresses(labels[1], labels[0], "")
	case len(labels) == 3 && labels[0] != "":
		return names.Addresses(labels[2], labels[1], labels[0])
	default:
		return nil, false
	}
}

func recordType(address netip.Addr) dnsmessage.Type {
	if address.Is4() {
		return dnsmessage.TypeA
	}
	return dnsmessage.TypeAAAA
}

func newRecord(address netip.Addr) dnsmessage.ResourceBody {
	if address.Is4() {
		return &dnsmessage.AResource{A: address.As4()}
	}
	return &dnsmessage.AAAAResource{AAAA: address.As16()}
}
