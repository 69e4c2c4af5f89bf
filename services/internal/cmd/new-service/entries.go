package main

import (
	"fmt"
	"strings"
)

// entries are the files that list services, with s among them.
func (s *service) entries(t tree) ([]file, error) {
	accounts := fmt.Sprintf(`
func %s() Account {
	group := corev1alpha1.GroupVersion.Group
	return Account{
		Service:    topology.%s,
		Everywhere: slices.Concat(common(), consumed(topology.%[2]s), []Right{events(), statuses(group, corev1alpha1.Stores)}),
	}
}
`, s.Account, s.Type)
	var files []file
	for _, e := range []struct {
		path  string
		edits []edit
	}{
		{"services/internal/topology/services.go", []edit{
			constant("ImpliedRole", fmt.Sprintf("%s = %q", s.Type, s.Name)),
			element("Services", "[]Service", fmt.Sprintf("{Name: %s, Kinds: []event.GroupResource{kinds.Stores().GroupResource}}", s.Type)),
		}},
		{"services/internal/rbac/accounts.go", []edit{
			element("Accounts", "[]Account", s.Account+"()"),
			before(`// common are the rights of every service\.`, accounts[1:]+"\n"),
		}},
		{"services/internal/rbac/rbac_test.go", []edit{
			element("TestAServiceChangesNothingButWhatIsItsOwn", "map[string][]string",
				fmt.Sprintf("topology.%s: {\"patch stores/status.core.platform-mesh.io\"}", s.Type)),
		}},
		{"services/internal/workload/workload.go", []edit{
			element("Workloads", "[]Workload", fmt.Sprintf("{Service: topology.%s, Serves: []string{%q}, Memory: 256}",
				s.Type, fmt.Sprintf("entail.%s.v1.%sService", s.Package, s.Type))),
		}},
		{"deploy/chaos/internal/system/service.go", []edit{
			element("Services", "[]Service", fmt.Sprintf("{Name: %q, Durable: %[1]q}", s.Name)),
		}},
		{"go.work", []edit{inOrder(`\t\./`, "\t./services/"+s.Name+"\n")}},
		{"Makefile", []edit{
			within(`WORK_MODULES +:= .*?( services/entail)`, " services/"+s.Name),
			within(`SERVICES +:= bin/.*()`, " bin/"+s.Name),
		}},
		{"deploy/docker/Dockerfile", []edit{before(`# The Kubernetes API server of one machine\..*`, fmt.Sprintf(`FROM service AS %s
COPY --from=build /out/%[1]s /
ENTRYPOINT ["/bin/%[1]s"]

`, s.Name))}},
		{"docker-compose.yaml", []edit{
			before(`    ports: \["127\.0\.0\.1:\$\{ENTAIL_KUBERNETES_PORT.*`, "      - --user=system:serviceaccount:entail-system:"+s.Name+"\n"),
			before(`  # docker compose --profile opensearch up.*`, s.composed()),
			inOrder(`  [a-z0-9-]+-standby: `, s.standby()),
		}},
		{"deploy/docker/prometheus.yaml", []edit{inOrder(`          - `, "          - "+s.Name+"\n")}},
		{".golangci.yml", []edit{before(`        end-to-end:`, fmt.Sprintf(`        %s:
          list-mode: lax
          files: ["**/services/%[1]s/**"]
          allow: [%[2]s/services/%[1]s, *internal, *library]
          deny: *services
`, s.Name, s.Root))}},
	} {
		data, err := t.read(e.path)
		if err != nil {
			return nil, err
		}
		for _, change := range e.edits {
			if data, err = change(data); err != nil {
				return nil, fmt.Errorf("entering %s in %s: %w", s.Name, e.path, err)
			}
		}
		files = append(files, file{e.path, data})
	}
	return files, nil
}

// composed is s as a container beside those of other services. Which port of the machine it has, the one who asks says.
func (s *service) composed() string {
	return fmt.Sprintf(`  %[1]s: &%[1]s
    <<: *program
    image: entail/%[1]s:${ENTAIL_VERSION:-devel}
    build: {<<: *build, target: %[1]s}
    environment: *environment
    depends_on: *needs
    ports: ["127.0.0.1:${ENTAIL_%[2]s_PORT:-}:8080"]
    volumes:
      - {type: volume, source: kubernetes, target: /etc/entail/kubeconfig, read_only: true, volume: {nocopy: true, subpath: %[1]s.kubeconfig}}
      - {type: volume, source: credentials, target: /etc/entail/nats, read_only: true, volume: {nocopy: true, subpath: nats-%[1]s}}

`, s.Name, strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")))
}

// standby is one more of s, which has no port of the machine.
func (s *service) standby() string {
	return fmt.Sprintf("  %[1]s-standby: {<<: *%[1]s, profiles: [ha], ports: [], networks: {default: {aliases: [%[1]s]}}}\n", s.Name)
}
