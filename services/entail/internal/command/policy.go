package command

import (
	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	"github.com/entail-dev/entail/services/entail/internal/policycommand"
)

// policyServer connects to PolicyService, which store-sync serves.
func policyServer(around IOStreams) policycommand.Server {
	return func(flags *pflag.FlagSet) policycommand.Dial {
		c := &connection{api: storeAPI()}
		c.bindFlags(flags, around.Getenv)
		return func() (policyv1connect.PolicyServiceClient, error) {
			return dialAPI(c, policyv1connect.NewPolicyServiceClient)
		}
	}
}
