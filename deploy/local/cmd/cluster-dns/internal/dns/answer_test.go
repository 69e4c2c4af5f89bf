package dns

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// cluster is one whose Services stand here, as HOST.SERVICE.NAMESPACE.
type cluster map[string][]string

func (c cluster) Addresses(namespace, service, host string) (addresses []netip.Addr, known bool) {
	texts, known := c[strings.TrimPrefix(host+"."+service+"."+namespace, ".")]
	return parseAddresses(texts), known
}

func ask(t *testing.T, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func TestAnswerHasAddresses(t *testing.T) {
	services := cluster{
		"nats.bus":              {"10.0.0.7"},
		"nats-0.nats-peers.bus": {"10.88.0.3"},
		"both.bus":              {"10.0.0.8", "fd00::8"},
		"empty.bus":             nil,
	}
	for name, test := range map[string]struct {
		name string
		kind dnsmessage.Type
		want []string
		code dnsmessage.RCode
	}{
		"a Service":                     {"nats.bus.svc.cluster.local.", dnsmessage.TypeA, []string{"10.0.0.7"}, dnsmessage.RCodeSuccess},
		"whatever the case":             {"NATS.bus.SVC.cluster.local.", dnsmessage.TypeA, []string{"10.0.0.7"}, dnsmessage.RCodeSuccess},
		"a pod behind it":               {"nats-0.nats-peers.bus.svc.cluster.local.", dnsmessage.TypeA, []string{"10.88.0.3"}, dnsmessage.RCodeSuccess},
		"of the new kind":               {"both.bus.svc.cluster.local.", dnsmessage.TypeAAAA, []string{"fd00::8"}, dnsmessage.RCodeSuccess},
		"of the old kind":               {"both.bus.svc.cluster.local.", dnsmessage.TypeA, []string{"10.0.0.8"}, dnsmessage.RCodeSuccess},
		"a kind that it has not":        {"nats.bus.svc.cluster.local.", dnsmessage.TypeAAAA, nil, dnsmessage.RCodeSuccess},
		"a text":                        {"nats.bus.svc.cluster.local.", dnsmessage.TypeTXT, nil, dnsmessage.RCodeSuccess},
		"nobody is ready":               {"empty.bus.svc.cluster.local.", dnsmessage.TypeA, nil, dnsmessage.RCodeSuccess},
		"no such Service":               {"other.bus.svc.cluster.local.", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
		"no such namespace":             {"nats.svc.cluster.local.", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
		"the domain alone":              {"svc.cluster.local.", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
		"outside":                       {"nats.bus.svc.example.org.", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
		"one that ends like the domain": {"nats.bus.svc.mycluster.local.", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
		"too many labels":               {"a.nats-0.nats-peers.bus.svc.cluster.local.", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := AnswerQuery(ask(t, test.name, test.kind), "cluster.local", services)
			if err != nil {
				t.Fatal(err)
			}
			var answer dnsmessage.Message
			if err := answer.Unpack(packed); err != nil {
				t.Fatal(err)
			}
			if !answer.Response || answer.ID != 7 || answer.RCode != test.code || len(answer.Questions) != 1 || answer.Questions[0].Name.String() != test.name {
				t.Errorf("answer = %s", answer.GoString())
			}
			if got := addressesOf(answer); !slices.Equal(got, test.want) {
				t.Errorf("addresses = %q, want %q", got, test.want)
			}
		})
	}
}

func addressesOf(answer dnsmessage.Message) (texts []string) {
	for _, resource := range answer.Answers {
		switch body := resource.Body.(type) {
		case *dnsmessage.AResource:
			texts = append(texts, netip.AddrFrom4(body.A).String())
		case *dnsmessage.AAAAResource:
			texts = append(texts, netip.AddrFrom16(body.AAAA).String())
		}
	}
	return texts
}

func TestAnswerFitsDatagram(t *testing.T) {
	var many []string
	for range 100 {
		many = append(many, "fd00:10:88:99:1234:5678:9abc:def0")
	}
	long := strings.Repeat("a", 63)
	packed, err := AnswerQuery(ask(t, long+"."+long+".svc.cluster.local.", dnsmessage.TypeAAAA), "cluster.local", cluster{long + "." + long: many})
	if err != nil || len(packed) > 512 {
		t.Errorf("%d bytes, %v", len(packed), err)
	}
}

func TestInvalidQueryIsIgnored(t *testing.T) {
	query := ask(t, "nats.bus.svc.cluster.local.", dnsmessage.TypeA)
	answer := slices.Clone(query)
	answer[2] |= 0x80
	for name, datagram := range map[string][]byte{"nothing": nil, "a part": query[:15], "a header alone": query[:12], "an answer": answer} {
		t.Run(name, func(t *testing.T) {
			if reply, err := AnswerQuery(datagram, "cluster.local", cluster{}); err == nil {
				t.Errorf("answered with %x", reply)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 1, 'b', 3, 's', 'v', 'c', 0, 0, 1, 0, 1})
	f.Fuzz(func(t *testing.T, query []byte) {
		packed, err := AnswerQuery(query, "cluster.local", cluster{"a.b": {"10.0.0.1"}})
		if err != nil {
			return
		}
		var answer dnsmessage.Message
		if err := answer.Unpack(packed); err != nil || len(packed) > 512 {
			t.Errorf("%x is answered with %x: %v", query, packed, err)
		}
	})
}
