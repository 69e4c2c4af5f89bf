package rpc

import (
	"testing"

	"connectrpc.com/connect"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

func TestPageTokenIsBoundToList(t *testing.T) {
	asked := &tuplev1.ListTuplesRequest{Store: "a", User: "user:1", PageSize: 3}
	first, seal, err := OpenPageToken(asked, "S1")
	if err != nil || first != "" || seal("") != "" {
		t.Fatalf("the first page has the token %q, the last gives %q, %v", first, seal(""), err)
	}
	token := seal("x.y")
	if got, _, err := OpenPageToken(&tuplev1.ListTuplesRequest{Store: "a", User: "user:1", PageSize: 7, PageToken: token}, "S1"); err != nil || got != "x.y" {
		t.Errorf("the next page has %q, %v", got, err)
	}
	for name, other := range map[string]struct {
		request PageTokenRequest
		more    string
	}{
		"another Store":         {&tuplev1.ListTuplesRequest{Store: "b", User: "user:1", PageToken: token}, "S1"},
		"another filter":        {&tuplev1.ListTuplesRequest{Store: "a", PageToken: token}, "S1"},
		"another OpenFGA store": {&tuplev1.ListTuplesRequest{Store: "a", User: "user:1", PageToken: token}, "S2"},
		"another question":      {&tuplev1.ListUndeclaredTuplesRequest{Store: "a", PageToken: token}, "S1"},
		"no list at all":        {&tuplev1.ListTuplesRequest{Store: "a", User: "user:1", PageToken: "x.y"}, "S1"},
	} {
		if _, _, err := OpenPageToken(other.request, other.more); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
