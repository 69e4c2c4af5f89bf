package dns

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	core "k8s.io/client-go/listers/core/v1"
	discovery "k8s.io/client-go/listers/discovery/v1"
)

// ServiceResolver are the Names of a cluster.
type ServiceResolver struct {
	Services core.ServiceLister
	Slices   discovery.EndpointSliceLister
}

// Addresses are a Service's own; without any, those of the pods behind it that are ready.
func (s ServiceResolver) Addresses(namespace, service, host string) (addresses []netip.Addr, known bool) {
	found, err := s.Services.Services(namespace).Get(service)
	if err != nil {
		return nil, false
	}
	if found.Spec.ClusterIP != corev1.ClusterIPNone {
		return parseAddresses(found.Spec.ClusterIPs), host == ""
	}
	ofService := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service})
	parts, err := s.Slices.EndpointSlices(namespace).List(ofService)
	if err != nil {
		return nil, false
	}
	for _, part := range parts {
		for _, endpoint := range part.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			if ready && (host == "" || endpoint.Hostname != nil && *endpoint.Hostname == host) {
				addresses = append(addresses, parseAddresses(endpoint.Addresses)...)
			}
		}
	}
	// One can be in two slices while it moves.
	slices.SortFunc(addresses, netip.Addr.Compare)
	addresses = slices.Compact(addresses)
	return addresses, host == "" || len(addresses) > 0
}

func parseAddresses(texts []string) (addresses []netip.Addr) {
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
