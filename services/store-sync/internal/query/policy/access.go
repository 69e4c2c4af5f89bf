package policy

import (
	"cmp"
	"fmt"
	"slices"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
)

// path is the URL path to which a caller needs access if the request names no Store.
const path = "/entail/policy"

// Access returns the rights that callers need. A request about one Store needs the right to read it, one about two
// Stores the right to list Stores. A request with only files needs access to the path of this service.
func Access() map[string]rpc.Access {
	return map[string]rpc.Access{
		policyv1connect.PolicyServiceCheckPolicyProcedure:   ofOne,
		policyv1connect.PolicyServiceCompilePolicyProcedure: ofOne,
		policyv1connect.PolicyServiceExplainActionProcedure: ofOne,
		policyv1connect.PolicyServiceGraphPolicyProcedure:   ofOne,
		policyv1connect.PolicyServiceDiffPoliciesProcedure:  ofTwo,
		policyv1connect.PolicyServiceFormatPolicyProcedure:  rpc.CanPath("get", path),
	}
}

func ofOne(request any) (rpc.Right, error) {
	m, ok := request.(interface{ GetPolicy() *policyv1.Policy })
	if !ok {
		return rpc.Right{}, fmt.Errorf("access rule for one policy got %T", request)
	}
	return accessRight(m.GetPolicy()), nil
}

func ofTwo(request any) (rpc.Right, error) {
	m, ok := request.(*policyv1.DiffPoliciesRequest)
	if !ok {
		return rpc.Right{}, fmt.Errorf("access rule for two policies got %T", request)
	}
	return accessRight(m.GetOld(), m.GetNew()), nil
}

func accessRight(policies ...*policyv1.Policy) rpc.Right {
	var names []string
	for _, p := range policies {
		if name := cmp.Or(p.GetStore(), p.GetBeside()); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	stores := kinds.Stores().GroupResource
	switch len(names) {
	case 0:
		return rpc.Right{Verb: "get", Path: path}
	case 1:
		return rpc.Right{Verb: "get", GroupResource: stores, Name: names[0]}
	default:
		return rpc.Right{Verb: "list", GroupResource: stores}
	}
}
