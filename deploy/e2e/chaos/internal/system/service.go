package system

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Service is one of Entail's services.
type Service struct {
	Name string
	// OpenFGA is true if the service calls OpenFGA.
	OpenFGA bool
	// Durable is the name of the service's durable consumer; empty if it has none.
	Durable string
}

// Webhook is the name of the service that answers access questions.
const Webhook = "webhook"

// Services returns the services to run. Add a new service here.
func Services() []Service {
	return []Service{
		{Name: "watcher"},
		{Name: "store-sync", OpenFGA: true, Durable: "store-sync"},
		{Name: "tuple-sync", OpenFGA: true, Durable: "tuple-sync"},
		{Name: "implied-role", Durable: "implied-role"},
		{Name: "opensearch-sync", Durable: "opensearch-sync"},
		{Name: Webhook},
	}
}

// Replica is one process of a service, with its paths to the servers.
type Replica struct {
	Process *Process
	Service Service
	// Index is the number of the replica. Replicas of all services with the same index share a machine.
	Index int
	// NATS holds the paths to the NATS servers.
	NATS []*Proxy
	// KubeLink and FGALink are the paths to the API server and to OpenFGA. FGALink is nil if the service does not call
	// OpenFGA.
	KubeLink, FGALink *Proxy

	// URL is the address of the replica's HTTP server, AuthorizerURL that of a webhook for SubjectAccessReviews.
	URL, AuthorizerURL string
}

// AllLinks returns all paths of a replica.
func (r *Replica) AllLinks() []*Proxy {
	links := append([]*Proxy{}, r.NATS...)
	for _, l := range []*Proxy{r.KubeLink, r.FGALink} {
		if l != nil {
			links = append(links, l)
		}
	}
	return links
}

// CheckReady returns nil if the replica reports that it is ready.
func (r *Replica) CheckReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := httpGet(ctx, r.URL+"/readyz")
	return err
}

// HandledMessages returns the number of messages that the replica has handled since its start.
func (r *Replica) HandledMessages(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	text, err := httpGet(ctx, r.URL+"/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "entail_messages_handled_total{") {
			n, _ := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
			sum += n
		}
	}
	return sum, nil
}

func (s *System) addServices() error {
	for index := range s.cfg.Replicas {
		for _, service := range Services() {
			r, err := s.newReplica(service, index)
			if err != nil {
				return err
			}
			s.Services = append(s.Services, r)
		}
	}
	return nil
}

// newReplica prepares one process. It resyncs only once a day, so a fault that events do not repair stays visible.
func (s *System) newReplica(service Service, index int) (*Replica, error) {
	name := fmt.Sprintf("%s-%d", service.Name, index)
	r := &Replica{Service: service, Index: index}
	var urls []string
	for i := range s.Nodes {
		node := (i + index) % len(s.Nodes) // The NATS server on its machine comes first.
		path, err := newProxy(fmt.Sprintf("%s to nats-%d", name, node), loopbackAddress(s.ports.nats[node]))
		if err != nil {
			return nil, err
		}
		r.NATS, urls = append(r.NATS, path), append(urls, natsURL(service.Name, path.Address()))
	}
	var err error
	if r.KubeLink, err = newProxy(name+" to kube", loopbackAddress(s.ports.kube)); err != nil {
		return nil, err
	}
	kubeconfig, err := s.writeKubeconfig(name, service, r.KubeLink)
	if err != nil {
		return nil, err
	}
	listen, err := freeAddress()
	if err != nil {
		return nil, err
	}
	r.URL = "http://" + listen
	args := []string{
		"--nats-url", strings.Join(urls, ","), "--kubeconfig", kubeconfig, "--listen", listen, "--auth", "none",
		"--resync", "24h",
	}
	switch service.Name {
	case "watcher":
		args = append(args, "--stream-replicas", strconv.Itoa(len(s.Nodes))) // It creates the streams.
	case "implied-role":
		args = append(args, "--without-guard") // Only administrators write here.
	case Webhook:
		authorizer, err := freeAddress()
		if err != nil {
			return nil, err
		}
		r.AuthorizerURL = "http://" + authorizer
		args = append(args, "--authorizer-listen", authorizer)
	}
	if service.OpenFGA {
		if r.FGALink, err = newProxy(name+" to openfga", s.OpenFGATarget()); err != nil {
			return nil, err
		}
		args = append(args, "--openfga-target", r.FGALink.Address())
	}
	r.Process = s.newProcess(name, cmp.Or(s.cfg.Binaries[service.Name], s.binaryPath(service.Name)), args...)
	return r, nil
}
