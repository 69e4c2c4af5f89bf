package authorizer

import (
	"context"
	"log/slog"
	"math/rand/v2"

	"github.com/entail-dev/entail/services/internal/truncate"
)

// maxLogged bounds each logged value of a request.
const maxLogged = 200

// logDecision logs a random share of decisions.
func (h *handler) logDecision(ctx context.Context, d *reviewDecision) {
	if h.cfg.DecisionLog == 0 || rand.Float64() >= h.cfg.DecisionLog { // A predictable choice would do no harm.
		return
	}
	said := func(key, value string) slog.Attr { return slog.String(key, truncate.Line(value, maxLogged)) }
	attributes := []slog.Attr{
		slog.String("decision", d.outcomeLabel()), slog.Bool("shadow", h.cfg.Shadow), slog.String("scope", d.scope),
		said("user", d.review.User), said("uid", d.review.UID), said("reason", d.would.Reason),
	}
	if r := d.review.Resource; r != nil {
		attributes = append(attributes, said("verb", r.Verb), said("group", r.Group), said("resource", r.Resource),
			said("subresource", r.Subresource), said("namespace", r.Namespace), said("name", r.Name))
	} else {
		attributes = append(attributes, said("verb", d.review.NonResource.Verb), said("path", d.review.NonResource.Path))
	}
	h.options.Log.LogAttrs(ctx, slog.LevelInfo, "decision", attributes...)
}
