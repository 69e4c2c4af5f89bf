package opensearch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Directories of a server. The server's user can read no secret except the server's own key.
const (
	configuration = "conf"
	security      = "conf/" + plugin
	secrets       = "credentials"
)

// logFile is the file with the log of the last run.
const logFile = "opensearch.log"

// settings is the format of opensearch.yml. Its arguments are the port, two directories and the cost of password
// hashes.
const settings = `cluster.name: entail
node.name: entail
discovery.type: single-node
network.host: 127.0.0.1
http.port: %d
transport.port: 0
path.data: %q
path.logs: %q
node.store.allow_mmap: false
cluster.routing.allocation.disk.threshold_enabled: false
plugins.security.ssl.transport.pemcert_filepath: node.pem
plugins.security.ssl.transport.pemkey_filepath: node-key.pem
plugins.security.ssl.transport.pemtrustedcas_filepath: ca.pem
plugins.security.ssl.transport.enforce_hostname_verification: false
plugins.security.ssl.http.enabled: true
plugins.security.ssl.http.pemcert_filepath: node.pem
plugins.security.ssl.http.pemkey_filepath: node-key.pem
plugins.security.ssl.http.pemtrustedcas_filepath: ca.pem
plugins.security.authcz.admin_dn: ["CN=admin,O=Entail"]
plugins.security.nodes_dn: ["CN=node,O=Entail"]
plugins.security.allow_default_init_securityindex: true
plugins.security.restapi.roles_enabled: [all_access, security_rest_api_access]
plugins.security.password.hashing.bcrypt.rounds: %d
plugins.security.audit.type: noop
`

// Initial configuration of a new server. It replaces the plugin's own users, because their default passwords are
// public.
const (
	users = `_meta: {type: internalusers, config_version: 2}
admin: {hash: %q, reserved: true, backend_roles: [admin], description: "Administrator"}
`
	mappings = `_meta: {type: rolesmapping, config_version: 2}
all_access: {reserved: false, backend_roles: [admin], description: "Maps admin to all_access"}
kibana_server: {reserved: true, users: [kibanaserver]}
`
	logging = `status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
`
)

// prepareFiles creates the directories and files of a server, and returns its credentials and the administrator's
// password.
func prepareFiles(cfg Config, now time.Time) (*credentials, string, error) {
	for _, dir := range []string{security, secrets, "data", "logs", "tmp"} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, dir), 0o700); err != nil {
			return nil, "", fmt.Errorf("creating the directory of OpenSearch: %w", err)
		}
	}
	known, err := loadCredentials(filepath.Join(cfg.Dir, secrets), now)
	if err != nil {
		return nil, "", err
	}
	password, err := loadAdminPassword(filepath.Join(cfg.Dir, secrets, "password"))
	if err != nil {
		return nil, "", err
	}
	return known, password, writeConfig(cfg, known, password)
}

// loadAdminPassword returns the administrator's password. It creates the password at the first start.
func loadAdminPassword(file string) (string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		data = []byte(rand.Text())
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("storing the administrator's password: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// writeConfig writes the configuration through [os.Root]. So a link that the server's user created cannot redirect a
// write.
func writeConfig(cfg Config, known *credentials, password string) error {
	dir, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return fmt.Errorf("configuring OpenSearch: %w", err)
	}
	defer dir.Close()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), cfg.passwordHashCost())
	if err != nil {
		return fmt.Errorf("configuring OpenSearch: %w", err)
	}
	if err := copyPluginFiles(cfg.Home, dir); err != nil {
		return fmt.Errorf("configuring OpenSearch: %w", err)
	}
	for name, data := range map[string][]byte{
		"conf/opensearch.yml": fmt.Appendf(nil, settings, cfg.Port, filepath.Join(cfg.Dir, "data"), filepath.Join(cfg.Dir, "logs"),
			cfg.passwordHashCost()),
		"conf/log4j2.properties":         []byte(logging),
		"conf/ca.pem":                    known.ca.Certificate,
		"conf/node.pem":                  known.node.Certificate,
		"conf/node-key.pem":              known.node.Key,
		security + "/internal_users.yml": fmt.Appendf(nil, users, hash),
		security + "/roles_mapping.yml":  []byte(mappings),
	} {
		if err := dir.WriteFile(name, data, 0o600); err != nil {
			return fmt.Errorf("configuring OpenSearch: %w", err)
		}
	}
	return nil
}

// copyPluginFiles copies the plugin's initial files. writeConfig then replaces some of them.
func copyPluginFiles(home string, dir *os.Root) error {
	files, err := filepath.Glob(filepath.Join(home, "config", plugin, "*.yml"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("%s has no files of the security plugin: run `make opensearch` again", home))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := dir.WriteFile(security+"/"+filepath.Base(file), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
