package dns

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/listers/core/v1"
	discovery "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// indexed is the store of an informer that holds these.
func indexed(t *testing.T, objects ...any) cache.Indexer {
	t.Helper()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, object := range objects {
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func service(name string, addresses ...string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bus", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: addresses[0], ClusterIPs: addresses},
	}
}

func slice(name, service string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bus", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Endpoints:  endpoints,
	}
}

func endpoint(host, address string, ready *bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Hostname: &host, Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
}

func TestServiceResolvesToClusterIPOrPods(t *testing.T) {
	names := ServiceResolver{
		Services: core.NewServiceLister(indexed(t, service("nats", "10.0.0.7"), service("nats-peers", corev1.ClusterIPNone), service("idle", corev1.ClusterIPNone))),
		Slices: discovery.NewEndpointSliceLister(indexed(t,
			slice("nats-x", "nats", endpoint("nats-0", "10.88.0.3", new(true))),
			slice("peers-y", "nats-peers", endpoint("nats-1", "10.88.0.4", nil), endpoint("nats-2", "10.88.0.5", new(false))),
			slice("peers-x", "nats-peers", endpoint("nats-0", "10.88.0.3", new(true)), endpoint("nats-1", "10.88.0.4", nil)),
		)),
	}
	for name, test := range map[string]struct {
		namespace, service, host string
		want                     []string
		known                    bool
	}{
		"its address":                      {"bus", "nats", "", []string{"10.0.0.7"}, true},
		"pods, those that are ready, once": {"bus", "nats-peers", "", []string{"10.88.0.3", "10.88.0.4"}, true},
		"one pod":                          {"bus", "nats-peers", "nats-0", []string{"10.88.0.3"}, true},
		"a pod that is not ready":          {"bus", "nats-peers", "nats-2", nil, false},
		"no pod":                           {"bus", "idle", "", nil, true},
		"elsewhere":                        {"other", "nats", "", nil, false},
		"none":                             {"bus", "none", "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			addresses, known := names.Addresses(test.namespace, test.service, test.host)
			if known != test.known || !slices.Equal(addresses, parseAddresses(test.want)) {
				t.Errorf("Addresses = %v, %t, want %v, %t", addresses, known, test.want, test.known)
			}
		})
	}
	if addresses, known := names.Addresses("bus", "nats", "nats-0"); known {
		t.Errorf("a pod behind a Service with an address has a name: %v", addresses)
	}
	if got := parseAddresses([]string{"10.0.0.1", "nonsense"}); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.0.0.1")}) {
		t.Errorf("parsed = %v", got)
	}
}
