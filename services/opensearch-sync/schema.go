package opensearchsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
)

// foreignSchemas holds the kinds whose CustomResourceDefinition lacks fields of our statuses, because another project has
// installed its own.
type foreignSchemas struct {
	log   *slog.Logger
	gauge *prometheus.GaugeVec

	mu      sync.Mutex
	foreign map[event.GroupResource]bool
}

func newForeignSchemas(registerer prometheus.Registerer, log *slog.Logger) *foreignSchemas {
	s := &foreignSchemas{log: log, foreign: map[event.GroupResource]bool{}, gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "entail_opensearch_foreign_definitions", Help: "Kinds whose installed CustomResourceDefinition lacks status fields that opensearch-sync writes.",
	}, []string{"resource", "group"})}
	registerer.MustRegister(s.gauge)
	return s
}

// isForeignKind reports whether the definition of a kind lacks our fields.
func (s *foreignSchemas) isForeignKind(kind kinds.Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.foreign[kind.GroupResource]
}

// setForeign records whether the definition of a kind lacks our fields, as the last write of a status has shown. It reports
// whether that has changed.
func (s *foreignSchemas) setForeign(kind kinds.Kind, foreign bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.foreign[kind.GroupResource] == foreign {
		return false
	}
	s.gauge.WithLabelValues(kind.Resource, kind.Group).Set(map[bool]float64{true: 1}[foreign])
	if s.foreign[kind.GroupResource] = foreign; foreign {
		s.log.Warn("the CustomResourceDefinition is another's", slog.String("resource", kind.GroupResource.String()), slog.String("remedy", definitionRemedy))
	} else {
		delete(s.foreign, kind.GroupResource)
	}
	return true
}

// foreignSchemaError returns an error that names the kinds, for /readyz.
func (s *foreignSchemas) foreignSchemaError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.foreign) == 0 {
		return nil
	}
	var names []string
	for kind := range maps.Keys(s.foreign) {
		names = append(names, kind.String())
	}
	slices.Sort(names)
	return fmt.Errorf("%s: %s", strings.Join(names, ", "), definitionRemedy)
}

// definitionRemedy is the advice for a definition of another project.
const definitionRemedy = "the CustomResourceDefinition drops conditions and records of this status; apply Entail's again " +
	"(entail install), and install the public operator with installCRDs: false"

// writeStatusFields writes a status. If the CustomResourceDefinition is another project's, put writes only the fields that exist
// there. The remedy is then the reason, if there is no other.
func (s *statusReporter) writeStatusFields(ctx context.Context, p *controller.Request[Key], o declaredObject, f statusFields,
	status setup.StatusUpdate,
) (event.Change, error) {
	status.Kind, status.Object, status.Fields, status.Unchanged = o.kind, o.Change, f, f.isSameStatus(o.statusFields())
	now, err := s.writer.Write(ctx, p, status)
	foreign := errors.Is(err, kube.ErrUndeclaredField)
	if !status.Unchanged && (foreign || err == nil) && s.schemas.setForeign(o.kind, foreign) && foreign {
		s.rivals.forgetAll() // The definition, not a controller, dropped the missing fields.
		return now, fmt.Errorf("%s: %w", o.Key, reconcile.ErrStale)
	}
	if !foreign {
		return now, err
	}
	f.Common = opensearchv1.Common{State: f.State, Reason: cmp.Or(f.Reason, definitionRemedy), ManagedCluster: f.ManagedCluster}
	f.Provisioned = nil
	if was := o.statusFields(); was.Reason != f.Reason {
		status.Events = []condition.EventContent{{Warning: true, Reason: "ForeignDefinition", Message: definitionRemedy}}
	}
	status.Fields, status.Unchanged = f, f.isSameStatus(o.statusFields())
	return s.writer.Write(ctx, p, status)
}
