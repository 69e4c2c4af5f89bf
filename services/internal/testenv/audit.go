package testenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/internal/rbac"
)

// auditPolicy makes the API server log each answered request of a service, and the start of each watch.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
	{"level": "Metadata", "userGroups": ["system:serviceaccounts:` + rbac.Namespace + `"]}, {"level": "None"}]}`

// auditLogDir is a directory with the audit log of the API server. The log holds the requests of all services, in all
// processes.
type auditLogDir string

// apiServerFlags returns the flags that make the API server write the audit log.
func (a auditLogDir) apiServerFlags() ([]string, error) {
	policy := filepath.Join(string(a), "policy.json")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(string(a), "audit.log"), "--audit-log-maxsize=10000"}, nil
}

// unusedRights returns the rights of a service that no request in the log needed.
func (a auditLogDir) unusedRights(service string) ([]Right, error) {
	file, err := os.Open(filepath.Join(string(a), "audit.log"))
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	return unusedRightsIn(service, file)
}

func unusedRightsIn(service string, log io.Reader) ([]Right, error) {
	left := append(ServiceRights(service), userNamespaceSecretRights(service)...)
	seen := map[authorizationCheck]bool{}
	for decoder := json.NewDecoder(log); ; {
		var e auditEvent
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return left, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if e.User.Username != (rbac.ServiceAccount{Service: service}).UserName() || e.Annotations["authorization.k8s.io/decision"] != "allow" {
			continue
		}
		for _, r := range e.authorizationChecks() {
			if !seen[r] {
				seen[r] = true
				left = slices.DeleteFunc(left, r.needsRight)
			}
		}
	}
}

// auditEvent holds the fields of one log entry that the tests need.
type auditEvent struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

// authorizationCheck holds the attributes of one authorization check.
type authorizationCheck struct{ verb, group, resource, namespace, name string }

// authorizationChecks returns the authorization checks of a request. A patch that creates an object causes two checks,
// because the API server then also requires the verb create.
func (e auditEvent) authorizationChecks() []authorizationCheck {
	resource := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
	r := authorizationCheck{e.Verb, e.ObjectRef.Group, resource, e.ObjectRef.Namespace, e.ObjectRef.Name}
	all := []authorizationCheck{r}
	if r.verb == "patch" && e.ResponseStatus.Code == 201 {
		r.verb = "create"
		all = append(all, r)
	}
	return all
}

// needsRight reports whether the request needs a right.
func (r authorizationCheck) needsRight(right Right) bool {
	return r.verb == right.Verb && r.group == right.Group && r.resource == right.Resource &&
		(right.namespace == "" || r.namespace == right.namespace) && (right.name == "" || r.name == right.name)
}
