package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Room bounds the storage of a NATS server, in bytes. It is small, so that a blow can fill it.
const Room = 64 << 20

// prepareNodes prepares the NATS servers, and in a cluster also the paths between them.
func (s *System) prepareNodes() error {
	s.Routes = map[int]map[int]*Proxy{}
	shipped, err := os.ReadFile(filepath.Join(s.cfg.Checkout, "deploy/base/nats/nats.conf"))
	if err != nil {
		return fmt.Errorf("configuring NATS: %w", err)
	}
	for i := range s.cfg.Nodes {
		s.Routes[i] = map[int]*Proxy{}
		for j := range s.cfg.Nodes {
			if i == j {
				continue
			}
			path, err := newProxy(fmt.Sprintf("nats-%d to nats-%d", i, j), loopbackAddress(s.ports.routes[j]))
			if err != nil {
				return err
			}
			s.Routes[i][j] = path
		}
	}
	for i := range s.cfg.Nodes {
		file := filepath.Join(s.cfg.Dir, fmt.Sprintf("nats-%d.conf", i))
		if err := os.WriteFile(file, append([]byte(s.natsConfig(i)), shipped...), 0o600); err != nil {
			return fmt.Errorf("configuring NATS: %w", err)
		}
		s.Nodes = append(s.Nodes, s.newProcess(fmt.Sprintf("nats-%d", i), s.binaryPath("nats-server"), "--config", file))
	}
	return nil
}

// password is the same for all users, because only their names and rights matter here.
const password = "chaos"

// natsURL returns the URL of a server for a user.
func natsURL(user, address string) string { return "nats://" + user + ":" + password + "@" + address }

// natsConfig returns the part of the configuration that one server adds to the shipped one. The server advertises an
// unused address, so servers and clients reach each other only through the given paths.
func (s *System) natsConfig(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: nats-%d\nlisten: %q\njetstream {store_dir: %q, max_file_store: %d, max_memory_store: %d}\n",
		i, loopbackAddress(s.ports.nats[i]), s.natsDir(i), Room, Room)
	users := []string{admin, "sys"}
	for _, service := range Services() {
		users = append(users, service.Name)
	}
	for _, user := range users {
		fmt.Fprintf(&b, "NATS_PASSWORD_%s: %q\n", strings.ToUpper(strings.ReplaceAll(user, "-", "_")), password)
	}
	if s.cfg.Nodes == 1 {
		return b.String()
	}
	fmt.Fprintf(&b, "cluster {name: entail, listen: %q, no_advertise: true, advertise: %q, routes: [", loopbackAddress(s.ports.routes[i]), loopbackAddress(1))
	for j := range s.cfg.Nodes {
		if path := s.Routes[i][j]; path != nil {
			fmt.Fprintf(&b, "%q, ", "nats://"+path.Address())
		}
	}
	b.WriteString("]}\n")
	return b.String()
}

func (s *System) natsDir(i int) string { return filepath.Join(s.cfg.Dir, fmt.Sprintf("nats-%d", i)) }

func (s *System) startNodes() error {
	for _, n := range s.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return nil
}

// WipeNode deletes all data of a NATS server on disk. The server must not run.
func (s *System) WipeNode(i int) error {
	if err := os.RemoveAll(s.natsDir(i)); err != nil {
		return fmt.Errorf("wiping nats-%d: %w", i, err)
	}
	return nil
}

func (s *System) backupDir(i int) string { return s.natsDir(i) + ".backup" }

// Backup kills all NATS servers, copies their data, and starts them.
func (s *System) Backup() error { return s.replaceData(s.natsDir, s.backupDir) }

// BackupRunning copies the data of all NATS servers as a power cut would leave it, if everything was synced until now.
// The servers and their connections live on.
func (s *System) BackupRunning() error {
	for _, n := range s.Nodes {
		n.Freeze()
		defer n.Thaw()
	}
	return s.copyData(s.natsDir, s.backupDir)
}

// Restore kills all NATS servers, replaces their data by that of the last [System.Backup], and starts them.
func (s *System) Restore() error { return s.replaceData(s.backupDir, s.natsDir) }

// replaceData replaces one directory of each NATS server by a copy of another while no server runs.
func (s *System) replaceData(from, to func(i int) string) error {
	for _, n := range s.Nodes {
		n.Kill()
	}
	if err := s.copyData(from, to); err != nil {
		return err
	}
	return s.startNodes()
}

// copyData replaces one directory of each NATS server by a copy of another.
func (s *System) copyData(from, to func(i int) string) error {
	for i := range s.Nodes {
		err := os.RemoveAll(to(i))
		if err == nil {
			err = os.CopyFS(to(i), os.DirFS(from(i)))
		}
		if err != nil {
			return fmt.Errorf("copying the data of nats-%d: %w", i, err)
		}
	}
	return nil
}

// admin is the user with all rights.
const admin = "admin"

// NATSAdminURLs returns the URLs of all NATS servers for the administrator, past every proxy.
func (s *System) NATSAdminURLs() string {
	urls := make([]string, len(s.ports.nats))
	for i, port := range s.ports.nats {
		urls[i] = natsURL(admin, loopbackAddress(port))
	}
	return strings.Join(urls, ",")
}
