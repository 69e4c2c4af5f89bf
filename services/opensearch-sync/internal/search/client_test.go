package search

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

func TestRefusedErrorRedactsPassword(t *testing.T) {
	secret := `cobalt"Ferret\91-orbit`
	encoded, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code int
		text string
	}{
		"in a refusal":                  {http.StatusBadRequest, "no good: " + secret},
		"by a server that is busy":      {http.StatusServiceUnavailable, "cannot take " + secret + " now"},
		"by a server that has conflict": {http.StatusConflict, secret},
		"as it was sent":                {http.StatusBadRequest, "unexpected " + string(encoded)},
		"where the text is cut":         {http.StatusBadRequest, strings.Repeat("x", maxReason-15) + secret},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(map[string]string{"message": c.text})
			if err != nil {
				t.Fatal(err)
			}
			refused := answerToError(c.code, body, secret)
			for _, text := range []string{refused.Error(), UserMessage(refused)} {
				if strings.Contains(text, "cobalt") {
					t.Errorf("%q tells of the password", text)
				}
			}
		})
	}
}

func TestTemporaryErrorsAreUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		want bool
	}{
		"another writer":         {http.StatusConflict, `{"status":"CONFLICT","message":"[roles]: version conflict"}`, true},
		"not initialized":        {http.StatusInternalServerError, `{"status":"INTERNAL_SERVER_ERROR","message":"Security index not initialized"}`, true},
		"before it is":           {http.StatusInternalServerError, `{"error":{"type":"null_pointer_exception","reason":"Cannot invoke \"ConfigModel.map\" because \"this.configModel\" is null"}}`, true},
		"starting":               {http.StatusServiceUnavailable, `OpenSearch Security not initialized.`, true},
		"wrong credentials":      {http.StatusUnauthorized, `Unauthorized`, true},
		"too few rights":         {http.StatusForbidden, `{"status":"FORBIDDEN","message":"No permission to access REST API: User x"}`, true},
		"reserved":               {http.StatusForbidden, `{"status":"FORBIDDEN","message":"Resource 'x' is reserved."}`, false},
		"weak":                   {http.StatusBadRequest, `{"status":"error","reason":"Weak password"}`, false},
		"of a wrong type":        {http.StatusInternalServerError, `{"error":{"type":"mismatched_input_exception","reason":"Cannot deserialize"}}`, false},
		"elsewhere":              {http.StatusFound, ``, true},
		"no security at all":     {http.StatusNotFound, `{"error":"no handler found for uri"}`, true},
		"no role of the name":    {http.StatusNotFound, `{"status":"NOT_FOUND","message":"role 'x' not found."}`, false},
		"named like an outage":   {http.StatusNotFound, `{"status":"NOT_FOUND","message":"role 'no handler found' not found."}`, false},
		"as if it had no rights": {http.StatusForbidden, `{"status":"FORBIDDEN","message":"Resource 'No permission to access REST API' is reserved."}`, false},
		"as if it began":         {http.StatusInternalServerError, `{"error":{"type":"exception","reason":"Cannot read 'configModel', not initialized, null"}}`, false},
		"as if it had no index":  {http.StatusInternalServerError, `{"status":"INTERNAL_SERVER_ERROR","message":"Cannot save 'x' not initialized"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := answerToError(c.code, []byte(c.body)); fault.IsUnavailable(err) != c.want {
				t.Errorf("%v; want it to pass by itself: %t", err, c.want)
			}
		})
	}
}

func TestPutUserRequiresPassword(t *testing.T) {
	edit := patchOperations(plan.Action{
		Name: "a/b", Body: plan.Body{"backend_roles": []any{"x"}, "attributes": map[string]any{}}, Fields: []string{"backend_roles", "description"},
	})
	data, err := json.Marshal(edit)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"op":"add","path":"/a~1b/backend_roles","value":["x"]},{"op":"remove","path":"/a~1b/description"}]`; string(data) != want {
		t.Errorf("%s, want %s", data, want)
	}
}

// A list that other clients may have changed meanwhile is never written as a whole.
func TestMappingIsEditedEntryByEntry(t *testing.T) {
	edit := patchOperations(plan.Action{
		Name: "a/b", Was: plan.Body{"users": []any{"x", "y"}},
		Body: plan.Body{"users": []any{"y", "z"}, "hosts": []any{"h"}, "backend_roles": []any{}, "and_backend_roles": []any{}},
	})
	data, err := json.Marshal(edit)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"add","path":"/a~1b/users/2","value":"x"},{"op":"remove","path":"/a~1b/users/2"},{"op":"remove","path":"/a~1b/users/0"},` +
		`{"op":"add","path":"/a~1b/users/-","value":"z"},{"op":"add","path":"/a~1b/hosts","value":["h"]}]`
	if string(data) != want {
		t.Errorf("got %s, want %s", data, want)
	}
}

func TestClientRefusesForeignServer(t *testing.T) {
	settings := ConnectionSettings{Forbidden: []string{"10.0.0.1:443", "10.96.0.1"}}
	for address, want := range map[string]bool{
		"192.0.2.1:9200": true, "10.0.0.1:9200": true, "10.0.0.1:443": false, "10.96.0.1:9200": false, "127.0.0.1:9200": false, "[::1]:9200": false,
		"[::ffff:127.0.0.1]:9200": false, "169.254.169.254:443": false, "[fe80::1%lo]:9200": false, "0.0.0.0:9200": false, "[::]:9200": false, "[::ffff:10.0.0.1]:443": false,
	} {
		if err := settings.checkAddress(t.Context(), "tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v, want it called: %t", address, err, want)
		}
	}
	for _, url := range []string{"http://x:9200", "https://a:b@x:9200", "https://x/y", "https://x?y", "https://", "x"} {
		if _, err := New(ConnectionSettings{URL: url, Insecure: true, User: "a", Password: "b"}); err == nil {
			t.Errorf("%s is accepted", url)
		}
	}
	if _, err := New(ConnectionSettings{URL: "https://x:9200", User: "a", Password: "b"}); err == nil {
		t.Error("a server that nobody vouches for is accepted")
	}
}

// A new connection may lead to another server than the one before.
func TestIdentifyRepeatsForNewConnection(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"cluster_uuid":"cluster-%d"}`, asked.Add(1))
	}))
	defer server.Close()
	c, err := New(ConnectionSettings{URL: server.URL, Insecure: true, User: "admin", Password: "b", Local: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []string{"cluster-1", "cluster-1", "cluster-2", "cluster-2"} {
		if want == "cluster-2" && asked.Load() == 1 {
			server.CloseClientConnections()
			if _, err := c.List(t.Context(), plan.Roles, NewAllowance(true)); err == nil { // The old connection is broken, and the new one leads elsewhere.
				t.Fatal("the list is no list")
			}
			asked.Store(1)
		}
		if got, err := c.ClusterUUID(t.Context()); err != nil || got != want {
			t.Errorf("it is %s, %v; want %s", got, err, want)
		}
	}
}

// A network or server that stalls must not receive the rest of a change after the client has given up.
func TestGivenUpChangeIsNotDeliveredLater(t *testing.T) {
	begun, gaveUp, read := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-gaveUp
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
	}))
	small := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { // The kernel of the client then holds most of the change.
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	}}
	listener, err := small.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Listener.Close() // The small one replaces it.
	server.Listener, server.EnableHTTP2 = listener, true
	server.StartTLS()
	defer server.Close()
	c, err := New(ConnectionSettings{URL: server.URL, Insecure: true, User: "admin", Password: "b", Local: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	large := plan.Action{Name: "a", Body: plan.Body{"description": strings.Repeat("x", 16<<10)}}
	if err := c.PatchEntities(ctx, plan.Tenants, []plan.Action{large}); !fault.IsUnavailable(err) {
		t.Errorf("got %v, want no answer", err)
	}
	close(gaveUp)
	if err := <-read; err == nil {
		t.Error("the server has received the whole change")
	}
}

// The client follows no redirects.
func TestClientDoesNotFollowRedirect(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	c, err := New(ConnectionSettings{URL: server.URL, Insecure: true, User: "admin", Password: "b", Local: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.PutUser(t.Context(), "anna", plan.Body{}, "cobalt-Ferret"); !fault.IsUnavailable(err) || elsewhere.Load() > 0 {
		t.Errorf("%d have gone elsewhere, %v", elsewhere.Load(), err)
	}
}

// A server, or a proxy before it, may repeat the request in its answer.
func TestErrorsRedactClientCredentials(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"message":"%s %s from %s"}`, r.Header.Get("Authorization"), password, user)
	}))
	defer server.Close()
	c, err := New(ConnectionSettings{URL: server.URL, Insecure: true, User: "admin", Password: "cobalt-Ferret", Local: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.List(t.Context(), plan.Roles, NewAllowance(true))
	if want := "OpenSearch answers 400: Basic [redacted] [redacted] from admin"; err == nil || UserMessage(err) != want {
		t.Errorf("told: %v", err)
	}
}

// lists starts a server that answers every request with one list.
func lists(t *testing.T, write func(io.Writer)) *Client {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w) }))
	t.Cleanup(server.Close)
	c, err := New(ConnectionSettings{URL: server.URL, Insecure: true, User: "admin", Password: "b", Local: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A tenant's server lists 62 MB of empty entities, or one entity with a million values. Reading it must not use memory
// that others need.
func TestListMemoryIsBounded(t *testing.T) {
	for name, thing := range map[string]string{"things": `"%x":{},`, "values": `"%x":{"attributes":{"a":[[],[],[],[],[],[],[],[]]}},`, "bytes": `"%x":{"description":"` + strings.Repeat("x", 1000) + `"},`} {
		t.Run(name, func(t *testing.T) {
			c := lists(t, func(w io.Writer) {
				out := bufio.NewWriter(w)
				fmt.Fprint(out, "{")
				for i, n := 0, 0; n < 62<<20; i++ {
					more, err := fmt.Fprintf(out, thing, i)
					if n += more; err != nil {
						return
					}
				}
				fmt.Fprint(out, `"last":{}}`)
				_ = out.Flush()
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.List(t.Context(), plan.Users, NewAllowance(true))
			runtime.ReadMemStats(&after)
			if !fault.IsUnavailable(err) || !strings.Contains(UserMessage(err), "lists more than") {
				t.Errorf("got %v", err)
			}
			took := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%d MiB allocated", took)
			if took > 600 { // The race detector allocates, too. Without the bound it is thousands.
				t.Errorf("got %d MiB allocated", took)
			}
		})
	}
}

// endless writes a list of items with a number each, until its reader stops.
type endless struct {
	item    string
	count   int
	pending []byte
}

func (e *endless) Read(p []byte) (int, error) {
	for len(e.pending) < len(p) {
		begin := ","
		if e.count == 0 {
			begin = "{"
		}
		e.pending = fmt.Appendf(append(e.pending, begin...), e.item, e.count)
		e.count++
	}
	n := copy(p, e.pending)
	e.pending = e.pending[n:]
	return n, nil
}

// The cost of a list is an upper bound of the memory that it takes, whatever the server lists.
func TestListTakesNoMoreMemoryThanItsCost(t *testing.T) {
	for name, item := range map[string]string{
		"empty entities": `"%x":{}`, "flags": `"%x":{"reserved":true}`, "small objects": `"%x":{"attributes":{"a":1}}`,
		"objects in a list": `"%x":{"backend_roles":[` + strings.TrimSuffix(strings.Repeat(`{"a":1},`, 1000), ",") + `]}`,
		"lists in a list":   `"%x":{"backend_roles":[` + strings.TrimSuffix(strings.Repeat(`[],`, 1000), ",") + `]}`,
		"numbers":           `"%x":{"backend_roles":[` + strings.TrimSuffix(strings.Repeat(`1,`, 10_000), ",") + `]}`,
		"texts":             `"%x":{"backend_roles":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 10_000), ",") + `]}`,
		"long texts":        `"%x":{"description":"` + strings.Repeat("é", 1_000_000) + `"}`,
		"a user": `"%x":{"hash":"","reserved":false,"hidden":false,"backend_roles":["staff"],"attributes":{"k8s-uid":"6a2f41a3-c54c-fce8-32d2-0324e1c32e22",` +
			`"entail-password":"0123456789abcdef0123456789abcdef"},"description":"","opendistro_security_roles":[],"static":false}`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			of, all := NewAllowance(true), map[string]plan.Entity{}
			from := &boundedReader{from: &endless{item: item}, of: of}
			runtime.GC()
			runtime.ReadMemStats(&before)
			err := decodeList(all, plan.Users, from)
			runtime.GC()
			runtime.ReadMemStats(&after)
			took := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			t.Logf("%d entities, %d MiB", len(all), took>>20)
			if !errors.Is(err, errTooLarge) || took > largeLists*5/4 {
				t.Errorf("got %d MiB, %v; want at most %d", took>>20, err, largeLists*5/4>>20)
			}
			runtime.KeepAlive(all)
		})
	}
}

// A caller with room for small lists stops early, and reads again with more room.
func TestListNeedsALargeAllowanceForMuch(t *testing.T) {
	c := lists(t, func(w io.Writer) {
		_, _ = io.CopyN(w, &endless{item: `"%x":{}`}, 100_000)
		fmt.Fprint(w, `"},"last":{}}`)
	})
	small, large := NewAllowance(false), NewAllowance(true)
	if _, err := c.List(t.Context(), plan.Roles, small); !errors.Is(err, ErrLarge) || !fault.IsUnavailable(err) {
		t.Errorf("got %v, want %v", err, ErrLarge)
	}
	_, _ = c.List(t.Context(), plan.Roles, large)
	if large.IsSmall() {
		t.Error("the list fits into a small allowance")
	}
	if large.Reset(); large.IsSmall() {
		t.Error("a reset forgets the size")
	}
}

func TestListRefusesTruncatedAnswer(t *testing.T) {
	for _, text := range []string{``, `{`, `{"a":{}`, `{"a":{},`, `{"a":{}}}`[:7], `[]`, `{"a":1}`, `{"a"}`} {
		if all, err := lists(t, func(w io.Writer) { fmt.Fprint(w, text) }).List(t.Context(), plan.Roles, NewAllowance(true)); !fault.IsUnavailable(err) {
			t.Errorf("%s: got %v, %v", text, all, err)
		}
	}
	all, err := lists(t, func(w io.Writer) { fmt.Fprint(w, `{"_meta":{},"a":{"cluster_permissions":["x"],"other":{}}} `) }).List(t.Context(), plan.Roles, NewAllowance(true))
	if err != nil || fmt.Sprint(all) != "map[a:{map[cluster_permissions:[x]] false false}]" {
		t.Errorf("got %v, %v", all, err)
	}
	// One text does not count as many values, whatever it contains.
	text := `{"a":{"description":"\\\"` + strings.Repeat(",[{", maxEntity/4) + `"}}`
	if all, err := lists(t, func(w io.Writer) { fmt.Fprint(w, text) }).List(t.Context(), plan.Roles, NewAllowance(true)); err != nil || len(all) != 1 {
		t.Errorf("got %d entities, %v", len(all), err)
	}
}

func TestRefusalNamesWrongValue(t *testing.T) {
	err := answerToError(http.StatusBadRequest, []byte(`{"status":"error","reason":"Wrong datatype","Masked field not valid: a::NOSUCH":"NOSUCH not available"}`))
	if want := "OpenSearch answers 400: Wrong datatype: Masked field not valid: a::NOSUCH (NOSUCH not available)"; err.Error() != want {
		t.Errorf("got %s, want %s", err, want)
	}
}
