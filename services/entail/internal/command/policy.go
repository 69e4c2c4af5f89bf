package command

import (
	"context"

	"github.com/spf13/pflag"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	"github.com/entail-dev/entail/services/entail/internal/policycommand"
)

// policyServer is the PolicyService, which is where the StoreService is.
func policyServer(around Surroundings) policycommand.Server {
	return func(flags *pflag.FlagSet) policycommand.Check {
		c := &connection{api: storeAPI()}
		c.bindFlags(flags, around.Getenv)
		return func(ctx context.Context, r *policyv1.CheckPolicyRequest) (*policyv1.CheckPolicyResponse, error) {
			client, err := dial(c, policyv1connect.NewPolicyServiceClient)
			if err != nil {
				return nil, err
			}
			return client.CheckPolicy(ctx, r)
		}
	}
}
