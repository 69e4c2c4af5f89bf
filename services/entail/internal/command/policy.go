package command

import (
	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	"github.com/entail-dev/entail/services/entail/internal/policycommand"
)

// policyServiceConnector connects to PolicyService, which store-sync serves.
func policyServiceConnector(around IOStreams) policycommand.ServerConnector {
	return func(flags *pflag.FlagSet) policycommand.DialFunc {
		c := &apiConnection{api: storeAPI()}
		c.bindFlags(flags, around.Getenv)
		return func() (policyv1connect.PolicyServiceClient, error) {
			return newAPIClient(c, policyv1connect.NewPolicyServiceClient)
		}
	}
}
