package natsauth

import (
	"bytes"
	"fmt"
	"regexp"
	"text/template"
)

// maxConsumers bounds the consumers of one stream. A replica of a service needs one of each stream for its informer,
// and each reload of the informer leaves one behind for a minute.
const maxConsumers = 1000

// ServerConfig returns the configuration of a NATS server with all users. It contains no password and no setting that
// differs between servers.
func ServerConfig() ([]byte, error) {
	logins := map[string]string{}
	for _, user := range UserNames() {
		logins[user] = "user: " + user + ", password: $" + PasswordVariable(user)
	}
	return renderAccounts(logins)
}

// ServerConfigWithPassword returns [ServerConfig] with the same password, or its bcrypt hash, for every user.
func ServerConfigWithPassword(password string) ([]byte, error) {
	config, err := ServerConfig()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, user := range UserNames() {
		fmt.Fprintf(&text, "%s: %q\n", PasswordVariable(user), password)
	}
	text.Write(config)
	return text.Bytes(), nil
}

// ServerConfigWithNKeys returns the configuration with public nkeys instead of names and passwords.
func ServerConfigWithNKeys(public map[string]string) ([]byte, error) {
	logins, key := map[string]string{}, regexp.MustCompile(`^U[A-Z2-7]{55}$`)
	for _, user := range UserNames() {
		if !key.MatchString(public[user]) {
			return nil, fmt.Errorf("%q is not a public nkey of NATS user %s", public[user], user)
		}
		logins[user] = "nkey: " + public[user]
	}
	return renderAccounts(logins)
}

func renderAccounts(logins map[string]string) ([]byte, error) {
	var out bytes.Buffer
	err := layout.Execute(&out, map[string]any{"Users": Users(), "Admin": Admin, "System": System, "Logins": logins, "MaxConsumers": maxConsumers})
	return out.Bytes(), err
}

//nolint:gochecknoglobals // A constant in all but the language's sense.
var layout = template.Must(template.New("nats.conf").Parse(
	`# Generated from the table in services/internal/natsauth by ` + "`make generate`" + `: change it there.
#
# This file lists all rights of each service on NATS. Passwords are variables of the environment, or of a file that
# sets them and then includes this one. NATS reads them as configuration, so put them in quotes ("…"). A user may have
# {nkey: $NATS_NKEY_…}, a public nkey, instead of a name and a password.
#
# Each server sets its own name, addresses, TLS, routes and directory of streams:
#
#     server_name: nats-0
#     jetstream {store_dir: /data}
#     tls {cert_file: …, key_file: …}
#     cluster {name: entail, routes: […]}
#     include nats.conf

accounts {
  ENTAIL {
    # No user can exhaust the server with consumers. NATS counts those of one stream.
    jetstream: {max_consumers: {{.MaxConsumers}}}
    users: [
{{- range .Users}}
      {
        {{index $.Logins .Service}}
        permissions: {
          publish: {
            allow: [
{{- range .Publish}}
              # {{.Why}}
{{- range .Subjects}}
              "{{.}}"
{{- end}}{{end}}
            ]
            deny: [
{{- range .Deny}}
              # {{.Why}}
{{- range .Subjects}}
              "{{.}}"
{{- end}}{{end}}
            ]
          }
          subscribe: "{{.SubscribeSubject}}"
        }
      }
{{- end}}
      # For people.
      {{"{"}}{{index .Logins .Admin}}}
    ]
  }
  SYS {
    users: [{{"{"}}{{index .Logins .System}}}]
  }
}
system_account: SYS
`))
