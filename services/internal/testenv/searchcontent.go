package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// securityAPI is the path before the name of a kind of security objects.
const securityAPI = "/_plugins/_security/api/"

// securityKinds lists the kinds in the order in which their objects can be removed: an object is removed before the
// objects to which it refers.
func securityKinds() []string {
	return []string{"rolesmapping", "internalusers", "roles", "tenants", "actiongroups"}
}

// readSecurityConfig returns the whole security configuration of the server, by kind and name.
func (s *openSearchProcess) readSecurityConfig(ctx context.Context) (map[string]map[string]json.RawMessage, error) {
	all := map[string]map[string]json.RawMessage{}
	for _, kind := range securityKinds() {
		status, answer, err := s.doRequest(ctx, http.MethodGet, securityAPI+kind, nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, answer)
		}
		things := map[string]json.RawMessage{}
		if err == nil {
			err = json.Unmarshal(answer, &things)
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind, err)
		}
		all[kind] = things
	}
	return all, nil
}

// restoreSecurityConfig resets the security configuration to the initial one. It starts the server if necessary.
func (s *openSearchProcess) restoreSecurityConfig(ctx context.Context) error {
	if err := s.ensureStarted(ctx); err != nil {
		return err
	}
	now, err := s.readSecurityConfig(ctx)
	if err != nil { // The index is missing; a restart creates it.
		if err := s.server.Stop(); err != nil {
			return err
		}
		if err := s.ensureStarted(ctx); err != nil {
			return err
		}
		if now, err = s.readSecurityConfig(ctx); err != nil {
			return err
		}
	}
	for _, kind := range securityKinds() {
		if err := s.patchKind(ctx, kind, patchBetween(now[kind], s.initialConfig[kind])); err != nil {
			return err
		}
	}
	return nil
}

// patchOperation is one operation of a JSON Patch.
type patchOperation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// patchBetween returns the operations that turn now into wanted.
func patchBetween(now, wanted map[string]json.RawMessage) []patchOperation {
	var operations []patchOperation
	pointer := strings.NewReplacer("~", "~0", "/", "~1")
	for name := range now {
		if _, ok := wanted[name]; !ok {
			operations = append(operations, patchOperation{Op: "remove", Path: "/" + pointer.Replace(name)})
		}
	}
	for name, value := range wanted {
		if !bytes.Equal(now[name], value) {
			operations = append(operations, patchOperation{Op: "add", Path: "/" + pointer.Replace(name), Value: writableFields(value)})
		}
	}
	return operations
}

// writableFields returns an object without the fields that only the server sets.
func writableFields(value json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return value
	}
	for _, own := range []string{"reserved", "hidden", "static", "hash"} {
		delete(fields, own)
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return value
	}
	return data
}

// patchSize bounds the operations of one request, because the server is slow with more. restorePause is the wait after
// a conflict with another writer.
const (
	patchSize    = 50
	restorePause = 50 * time.Millisecond
)

func (s *openSearchProcess) patchKind(ctx context.Context, kind string, operations []patchOperation) error {
	for len(operations) > 0 {
		n := min(patchSize, len(operations))
		status, answer, err := s.doRequest(ctx, http.MethodPatch, securityAPI+kind, operations[:n])
		switch {
		case err != nil:
			return err
		case status == http.StatusConflict:
			if !backoff.Sleep(ctx, restorePause) {
				return ctx.Err()
			}
			continue
		case status != http.StatusOK:
			return fmt.Errorf("restoring %s: %d %s", kind, status, answer)
		}
		operations = operations[n:]
	}
	return nil
}
