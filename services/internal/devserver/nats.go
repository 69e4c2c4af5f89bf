package devserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/entail-dev/entail/services/internal/natsauth"
)

// MaxPayload bounds a message in bytes. It equals the limit in all deployments, so that a message that is too large
// for them also fails here.
const MaxPayload = 1 << 20

// NATSConfig configures bin/nats-server.
type NATSConfig struct {
	// Dir holds the streams and the configuration.
	Dir string
	// Port is the port to listen on. With 0, a free port is used.
	Port int
	// Password is the password of all users of package natsauth. Each user still has only its own rights.
	Password string
}

// StartNATS starts NATS with JetStream on disk, and returns when it accepts connections.
func StartNATS(ctx context.Context, cfg NATSConfig) (*ServerProcess, error) {
	binary, err := FindProgram("nats-server")
	if err != nil {
		return nil, err
	}
	name := "entail-" + rand.Text()
	p := serverProgram{name: "NATS", port: cfg.Port}
	p.command = func(port int) (*exec.Cmd, error) {
		file := filepath.Join(cfg.Dir, "nats.conf")
		return exec.Command(binary, "--config", file), cfg.writeConfig(file, name, port)
	}
	p.ready = func(ctx context.Context, port int) error { return checkServerName(ctx, name, port) }
	return p.startServer(ctx)
}

// URL returns the address at which a user of package natsauth connects.
func (c *NATSConfig) URL(user string) string {
	return (&url.URL{Scheme: "nats", User: url.UserPassword(user, c.Password), Host: LoopbackAddress(c.Port)}).String()
}

// writeConfig writes the server's configuration: its own settings and the shipped users.
func (c *NATSConfig) writeConfig(file, name string, port int) error {
	users, err := natsauth.ServerConfigWithPassword(c.Password)
	if err != nil {
		return err
	}
	if err := makePrivateDir(c.Dir); err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "server_name: %q\nlisten: %q\nmax_payload: %d\njetstream {store_dir: %q}\n", name, LoopbackAddress(port), MaxPayload, c.Dir)
	text.Write(users)
	return os.WriteFile(file, text.Bytes(), 0o600)
}

// checkServerName returns an error if the server on a port has another name. Another program may have taken the port
// first.
func checkServerName(ctx context.Context, name string, port int) error {
	conn, err := dialLocal(ctx, port)
	if err != nil {
		return err
	}
	defer conn.Close()
	greeting, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.Contains(greeting, `"server_name":"`+name+`"`) {
		err = fmt.Errorf("port %d belongs to another server: %.200s", port, greeting)
	}
	return err
}
