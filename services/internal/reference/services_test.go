package reference_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/internal/deployspec"
	"github.com/entail-dev/entail/services/internal/natsauth"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/topology"
)

// servicesPage returns a page with the kinds, APIs and rights of each service. It uses the same packages as the
// generators of the manifests.
func servicesPage(string) (string, error) {
	var out strings.Builder
	out.WriteString("# Services\n\nThis page lists the kinds that each service follows, the APIs that it serves, and all its rights. The accounts in " +
		"[deploy/base](../../deploy/base) and the NATS users in [nats.conf](../../deploy/base/nats/nats.conf) are generated from the same tables.\n")
	for _, account := range rbac.ServiceAccounts() {
		of := func(name string) bool { return name == account.Service }
		w := deployspec.Workloads()[slices.IndexFunc(deployspec.Workloads(), func(w deployspec.Workload) bool { return of(w.Service) })]
		user := natsauth.Users()[slices.IndexFunc(natsauth.Users(), func(u natsauth.ServiceUser) bool { return of(u.Service) })]
		fmt.Fprintf(&out, "\n## %s\n\n| | |\n|---|---|\n", account.Service)
		fmt.Fprintf(&out, "| follows | %s |\n| serves | %s on port %d |\n", consumedKinds(account.Service), codeWords(w.Serves), deployspec.QueryPort)
		if w.Admission {
			fmt.Fprintf(&out, "| admission webhooks | on port %d |\n", deployspec.AdmissionPort)
		}
		fmt.Fprintf(&out, "| memory | %d MiB |\n", w.Memory)
		out.WriteString("\n| verbs in Kubernetes | resources | reason |\n|---|---|---|\n")
		writeRights(&out, account.Everywhere, "")
		writeRights(&out, account.Own, ", in namespace `"+rbac.Namespace+"`")
		writeRights(&out, account.Secrets, ", in namespaces where `"+account.SecretsRoleName()+"` is bound")
		out.WriteString("\n| NATS subjects | reason |\n|---|---|\n")
		for _, right := range user.Publish {
			fmt.Fprintf(&out, "| %s | %s |\n", codeWords(right.Subjects), right.Why)
		}
		fmt.Fprintf(&out, "| subscribes to %s only | The service receives the answers to its own requests. |\n", codeWords([]string{user.SubscribeSubject()}))
		for _, right := range user.Deny {
			fmt.Fprintf(&out, "| never %s | %s |\n", codeWords(right.Subjects), right.Why)
		}
	}
	return out.String(), nil
}

// consumedKinds returns the kinds that a service reads from NATS. The watcher reads none from NATS, because it reads
// the API server.
func consumedKinds(name string) string {
	service, ok := topology.FindService(name)
	if !ok {
		return "all kinds below, at the API server, for the other services"
	}
	var resources []string
	for _, kind := range service.Kinds {
		resources = append(resources, kind.String())
	}
	if service.Targets {
		return codeWords(resources) + ", and the metadata of objects of all kinds that ProtectedResources register"
	}
	return codeWords(resources)
}

func writeRights(out *strings.Builder, rights []rbac.Right, where string) {
	for _, right := range rights {
		var on []string
		for _, resource := range right.Resources {
			if group := right.APIGroups[0]; group != "" {
				resource += "." + group
			}
			on = append(on, resource)
		}
		named := ""
		if len(right.ResourceNames) > 0 {
			named = " named " + codeWords(right.ResourceNames)
		}
		fmt.Fprintf(out, "| %s | %s%s%s | %s |\n", strings.Join(right.Verbs, ", "), codeWords(on), named, where, right.Why)
	}
}

func codeWords(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }
