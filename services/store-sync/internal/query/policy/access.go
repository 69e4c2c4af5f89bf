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

// RequiredAccess returns the rights that callers need. A request about one Store needs the right to read it, one about two
// Stores the right to list Stores. A request with only files needs access to the path of this service.
func RequiredAccess() map[string]rpc.AccessRule {
	return map[string]rpc.AccessRule{
		policyv1connect.PolicyServiceCheckPolicyProcedure:   onePolicyRight,
		policyv1connect.PolicyServiceCompilePolicyProcedure: onePolicyRight,
		policyv1connect.PolicyServiceExplainActionProcedure: onePolicyRight,
		policyv1connect.PolicyServiceGraphPolicyProcedure:   onePolicyRight,
		policyv1connect.PolicyServiceDiffPoliciesProcedure:  twoPoliciesRight,
		policyv1connect.PolicyServiceFormatPolicyProcedure:  rpc.RequireVerbOnPath("get", path),
	}
}

func onePolicyRight(request any) (rpc.RequiredRight, error) {
	m, ok := request.(interface{ GetPolicy() *policyv1.Policy })
	if !ok {
		return rpc.RequiredRight{}, fmt.Errorf("access rule for one policy got %T", request)
	}
	return storesReadRight(m.GetPolicy()), nil
}

func twoPoliciesRight(request any) (rpc.RequiredRight, error) {
	m, ok := request.(*policyv1.DiffPoliciesRequest)
	if !ok {
		return rpc.RequiredRight{}, fmt.Errorf("access rule for two policies got %T", request)
	}
	return storesReadRight(m.GetOld(), m.GetNew()), nil
}

func storesReadRight(policies ...*policyv1.Policy) rpc.RequiredRight {
	var names []string
	for _, p := range policies {
		if name := cmp.Or(p.GetStore(), p.GetBeside()); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	stores := kinds.Stores().GroupResource
	switch len(names) {
	case 0:
		return rpc.RequiredRight{Verb: "get", Path: path}
	case 1:
		return rpc.RequiredRight{Verb: "get", GroupResource: stores, Name: names[0]}
	default:
		return rpc.RequiredRight{Verb: "list", GroupResource: stores}
	}
}
