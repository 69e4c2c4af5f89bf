//go:build integration

package opensearchsync_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// executor applies the edits of one history to the servers.
type executor struct {
	*testEnv
	// pruned holds the kinds whose definition drops, or has dropped, fields of the status.
	pruned map[string]bool
}

// object returns the kind and namespace, and the name of the object with an id.
func (t *executor) object(id string) (kind kinds.Kind, name string) {
	part := strings.Split(id, "/")
	return kindOf(part[1]).InNamespace(part[0]), part[2]
}

func (t *executor) connectionSecret(space string) error {
	certificate, key := t.search.AdminCertificate()
	return t.putSecret(space, "connection", map[string]string{
		"url": t.search.URL(), "ca.crt": string(t.search.CA()), "tls.crt": string(certificate), "tls.key": string(key),
	})
}

func (t *executor) putSecret(space, name string, values map[string]string) error {
	_, err := t.Kube.ApplyFields(t.T, kinds.Secrets().InNamespace(space), name, map[string]any{"stringData": values})
	return err
}

// cluster creates or deletes the cluster object of a namespace.
func (t *executor) cluster(space string, exists bool) error {
	kind := kinds.OpenSearchClusters().InNamespace(space)
	if !exists {
		t.Delete(kind, cluster)
		return nil
	}
	t.AwaitGone(kind, cluster)
	_, err := t.Kube.ApplyFields(t.T, kind, cluster, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"entail.dev/connection-secret": "connection"}},
	})
	return err
}

// apply creates or edits an object. Before it creates one, it waits until an earlier object of the name is gone.
func (t *executor) apply(id string, spec map[string]any, adopts, exists bool) error {
	kind, name := t.object(id)
	fields := map[string]any{"spec": spec}
	if adopts {
		fields["metadata"] = map[string]any{"annotations": map[string]any{"opensearch.org/adopt": "true"}}
	}
	if !exists {
		t.AwaitGone(kind, name)
	}
	_, err := t.Kube.ApplyFields(t.T, kind, name, fields)
	return err
}

func (t *executor) remove(id string) error {
	t.Delete(t.object(id))
	return nil
}

// strip removes the finalizers of an object, if it still exists.
func (t *executor) strip(id string) error {
	kind, name := t.object(id)
	_, err := t.ResourceClient(kind).Namespace(kind.Namespace).Patch(t.T.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// send sends a request to the security API like another client. It retries while the service writes the same document.
func (t *executor) send(method, path string, body any) error {
	var failed error
	testenv.Eventually(t.T, soon, func() error {
		status, answer := t.search.RequestAsAdmin(t.T, method, "/_plugins/_security/api/"+path, body)
		failed = nil
		if status/100 != 2 {
			failed = fmt.Errorf("%s %s: %d %s", method, path, status, answer)
		}
		if status == http.StatusConflict {
			return failed
		}
		return nil
	})
	return failed
}

// write writes an entity like another client.
func (t *executor) write(path, content string) error {
	apiKind, _, _ := strings.Cut(path, "/")
	return t.send(http.MethodPut, path, map[string]any{
		"internalusers": map[string]any{"password": content}, "roles": map[string]any{"cluster_permissions": []string{content}},
		"tenants": map[string]any{"description": content}, "actiongroups": map[string]any{"allowed_actions": []string{content}},
	}[apiKind])
}

// entry adds an entry to a mapping, or removes it, like another client.
func (t *executor) entry(entry string, wanted bool) error {
	part := strings.Split(entry, "/")
	path, field, value := mappings+part[1], part[2], part[3]
	_, data := t.search.RequestAsAdmin(t.T, http.MethodGet, "/_plugins/_security/api/"+path, nil)
	var listed map[string]json.RawMessage
	var mapping map[string]any
	if err := json.Unmarshal(data, &listed); err != nil {
		return err
	}
	_ = json.Unmarshal(listed[part[1]], &mapping) // Without a mapping, the answer is an error.
	values, _ := mapping[field].([]any)
	values = append([]any{}, slices.DeleteFunc(values, func(v any) bool { return v == value })...)
	if wanted {
		values = append(values, value)
	}
	if mapping == nil {
		return t.send(http.MethodPut, path, map[string]any{field: values})
	}
	return t.send(http.MethodPatch, path, []any{map[string]any{"op": "add", "path": "/" + field, "value": values}})
}

// entity decodes the content of all kinds of the security API.
type entity struct {
	Permissions  []string `json:"cluster_permissions"`
	Description  string   `json:"description"`
	Actions      []string `json:"allowed_actions"`
	Users        []string `json:"users"`
	BackendRoles []string `json:"backend_roles"`
	Hosts        []string `json:"hosts"`
}

// observe reads the objects of a history and what OpenSearch holds for them. It returns an error until the service has
// handled the newest generation of every object.
func (t *executor) observe(h *history) (o observedContent, err error) {
	o = observedContent{present: map[string]bool{}, status: map[string]string{}, content: map[string]string{}}
	for _, s := range h.spaces {
		_, err := t.core.CoreV1().Namespaces().Get(t.T.Context(), s.name, metav1.GetOptions{})
		o.present[s.name] = err == nil
		for _, apiKind := range apiKinds() {
			for _, u := range t.List(kindOf(apiKind).InNamespace(s.name)).Items {
				id := strings.Join([]string{s.name, apiKind, u.GetName()}, "/")
				o.present[id] = true
				o.status[id] = fmt.Sprint(u.Object["status"])
				seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
				if d := h.objects[id]; d != nil && !d.deleted && s.connected() && !t.pruned[apiKind] && seen != u.GetGeneration() {
					return o, fmt.Errorf("%s has generation %d, and the service has handled %d", id, u.GetGeneration(), seen)
				}
			}
		}
	}
	for _, apiKind := range apiKinds() {
		if err := t.entities(h, apiKind, o.content); err != nil {
			return o, err
		}
	}
	return o, nil
}

// apiKinds lists the kinds of the security API.
func apiKinds() []string {
	return []string{"internalusers", "roles", "rolesmapping", "tenants", "actiongroups"}
}

// entities adds the entities of a kind to content.
func (t *executor) entities(h *history, apiKind string, content map[string]string) error {
	status, data := t.search.RequestAsAdmin(t.T, http.MethodGet, "/_plugins/_security/api/"+apiKind, nil)
	var all map[string]entity
	if err := json.Unmarshal(data, &all); err != nil || status != http.StatusOK {
		return fmt.Errorf("listing %s: %d %w", apiKind, status, err)
	}
	for name, e := range all {
		if !strings.HasPrefix(name, h.prefix) {
			continue
		}
		switch path := apiKind + "/" + name; apiKind {
		case "internalusers":
			content[path] = anyPassword
		case "roles":
			content[path] = strings.Join(e.Permissions, ",")
		case "tenants":
			content[path] = e.Description
		case "actiongroups":
			content[path] = strings.Join(e.Actions, ",")
		case "rolesmapping":
			if content[path] = ""; len(e.Users)+len(e.BackendRoles)+len(e.Hosts) > 0 {
				delete(content, path)
			}
			for field, values := range map[string][]string{"users": e.Users, "backend_roles": e.BackendRoles, "hosts": e.Hosts} {
				for _, v := range values {
					content[path+"/"+field+"/"+v] = ""
				}
			}
		}
	}
	return nil
}

// logIn replaces the content of users by the password with which they can log in. It tries those that the reference
// permits.
func (t *executor) logIn(h *history, o observedContent) {
	for path, content := range o.content {
		if content != anyPassword {
			continue
		}
		tries := slices.DeleteFunc([]string{h.foreign[path]}, func(password string) bool { return password == "" })
		for _, d := range h.list() {
			tries = append(tries, d.contents(path)...)
		}
		i := slices.IndexFunc(tries, func(password string) bool {
			status, _ := t.search.TryLogin(t.T, strings.TrimPrefix(path, "internalusers/"), password)
			return status == http.StatusOK
		})
		if o.content[path] = "no known password"; i >= 0 {
			o.content[path] = tries[i]
		}
	}
}
