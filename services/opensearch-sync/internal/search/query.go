package search

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/truncate"
)

// noIndex matches no index, so that a query is parsed and not run.
const noIndex = "/entail-parses-only-*/_validate/query?explain=true&allow_no_indices=true"

// ExplainQueryError returns why the server cannot parse a query in JSON, or "". The server parses a query before it
// checks the rights of the client.
func (c *Client) ExplainQueryError(ctx context.Context, query string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	response, err := c.sendRequest(ctx, http.MethodPost, noIndex, []byte(`{"query":`+query+`}`))
	if refused, is := errors.AsType[*RefusedError](err); is {
		if refused.Code == http.StatusBadRequest {
			return refused.Text, nil
		}
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	data, err := readBody(response.Body)
	if err != nil {
		return "", err
	}
	var says struct {
		Valid *bool  `json:"valid"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(data, &says); err != nil || says.Valid == nil {
		return "", fault.Unavailable(errors.New("OpenSearch does not report whether a query is valid"))
	}
	if *says.Valid {
		return "", nil
	}
	return truncate.Line(redactSecrets(says.Error, c.secrets), maxReason), nil
}
