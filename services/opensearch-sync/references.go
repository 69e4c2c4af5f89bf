package opensearchsync

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// secretPathsOf returns the Secrets that an object names, as namespace/name.
func secretPathsOf[O metav1.Object](o O) (all []string) {
	if names, ok := any(o).(interface{ SecretNames() []string }); ok {
		for _, name := range names.SecretNames() {
			all = append(all, o.GetNamespace()+"/"+name)
		}
	}
	return all
}

func (t kindTable[T, P]) clustersUsingSecret(secret event.Key) (clusters []event.Key) {
	for _, o := range t.rows.ListByIndex(bySecret, secret.NamespacedName()) {
		if is := clusterKey(o.Key.Cluster, o.Key.Namespace, P(o.Value).Cluster()); is.Cluster == secret.Cluster && !slices.Contains(clusters, is) {
			clusters = append(clusters, is)
		}
	}
	return clusters
}

// keysUsingSecret returns the keys whose runs read a Secret: those of users with a password in it, and all keys of clusters
// that use it.
func (s *state) keysUsingSecret(secret event.Key) (all []Key) {
	for _, t := range s.tables[plan.Users] {
		for _, cluster := range t.clustersUsingSecret(secret) {
			all = append(all, Key{cluster, plan.Users})
		}
	}
	for _, c := range s.clusters {
		for _, o := range c.rows.ListByIndex(bySecret, secret.NamespacedName()) {
			if o.Key.Cluster == secret.Cluster {
				all = append(all, keysOfCluster(clusterKey(o.Key.Cluster, o.Key.Namespace, o.Key.Name))...)
			}
		}
	}
	return all
}

// secretState returns the state of a Secret in the namespace of a cluster. It reports false if the informer does not
// follow the Secret.
func (s *state) secretState(cluster event.Key, name string) (event.Change, bool) {
	o, live := s.secrets.Get(event.Key{Cluster: cluster.Cluster, GroupResource: kinds.Secrets().GroupResource, Namespace: cluster.Namespace, Name: name})
	return o.Change, live
}
