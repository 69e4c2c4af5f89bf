// Package options reads the command line of kube-local and refuses, with a
// message that says what to do, everything that could not work later.
package options

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options is what the command line asked for. Paths are absolute.
type Options struct {
	DataDir     string
	LogFile     string
	BindAddress net.IP
	Port        int
	// ServerName is what others than this machine call the server; empty when it is on loopback.
	ServerName string
	Users      []ClientUser
	// Nodes says that others run pods: the API server has what they need.
	Nodes               bool
	AuthorizationConfig string
	APIServerArgs       []string
	ExitWithStdin       bool
	UnsafeNoFsync       bool
}

const usage = `Usage: kube-local --data-dir DIR [flags]

Runs a Kubernetes API server with etcd and a few controllers in one process,
on loopback unless it has a --server-name. Prints {"kubeconfig": ..., "server": ...} when it is ready.

Flags:
`

// Parse reads args. Help goes to w; the error is then pflag.ErrHelp.
func Parse(args []string, w io.Writer) (Options, error) {
	var (
		o     Options
		bind  string
		users []string
		nodes []string
		flags = pflag.NewFlagSet("kube-local", pflag.ContinueOnError)
	)
	flags.SortFlags = false
	flags.Usage = func() { fmt.Fprint(w, usage, flags.FlagUsages()) }
	flags.StringVar(&o.DataDir, "data-dir", "", "directory that holds all state; created when missing (required)")
	flags.IntVar(&o.Port, "port", 0, "port to listen on; 0 takes a free one and keeps it over restarts")
	flags.StringVar(&bind, "bind-address", "127.0.0.1", "address to listen on: of loopback, or any with --server-name")
	flags.StringVar(&o.ServerName, "server-name", "", "`NAME` or address by which others reach this server: in its certificate, and in all kubeconfigs")
	flags.StringArrayVar(&users, "user", nil, "`NAME[:GROUP,GROUP]` gets a client certificate in DATA-DIR/NAME.kubeconfig, "+
		"and so does the service account system:serviceaccount:NAMESPACE:NAME; repeatable")
	flags.StringArrayVar(&nodes, "node", nil, "`NAME` of a node whose kubelet gets DATA-DIR/NAME.kubeconfig; "+
		"scheduler, controllers and proxy get theirs; repeatable")
	flags.StringVar(&o.AuthorizationConfig, "authorization-config", "", "AuthorizationConfiguration `file` of the API server; RBAC alone without it")
	flags.StringArrayVar(&o.APIServerArgs, "apiserver-arg", nil, "further `--flag=value` of the API server, wins over our own; repeatable")
	flags.BoolVar(&o.ExitWithStdin, "exit-with-stdin", false, "stop when standard input ends, so that no killed parent leaves the server behind")
	flags.BoolVar(&o.UnsafeNoFsync, "unsafe-no-fsync", false, "do not wait for the disk; quicker, but a power cut can destroy the data")
	flags.StringVar(&o.LogFile, "log-file", "", "`file` for the logs of the components (default DATA-DIR/kube-local.log)")
	if err := flags.Parse(args); err != nil {
		return Options{}, err
	}
	if flags.NArg() > 0 {
		return Options{}, fmt.Errorf("unexpected argument %q: kube-local takes flags only, see --help", flags.Arg(0))
	}
	if err := o.checkBindAddress(bind); err != nil {
		return Options{}, err
	}
	if o.Port < 0 || o.Port > 65535 {
		return Options{}, fmt.Errorf("--port %d is out of range: use 1 to 65535, or 0 for a free one", o.Port)
	}
	var err error
	if o.Users, err = parseUsers(users, nodes); err != nil {
		return Options{}, err
	}
	o.Nodes = len(nodes) > 0
	return o, o.resolvePaths()
}

// checkBindAddress checks where the server is reached.
func (o *Options) checkBindAddress(bind string) error {
	o.BindAddress = net.ParseIP(bind)
	if o.ServerName == "" && (o.BindAddress == nil || !o.BindAddress.IsLoopback()) {
		return fmt.Errorf("--bind-address %q is not a loopback address: use 127.0.0.1 or ::1, or say by --server-name how others reach it", bind)
	}
	if o.BindAddress == nil {
		return fmt.Errorf("--bind-address %q is not an address: use one of this machine, or 0.0.0.0 for all", bind)
	}
	if o.ServerName != "" && net.ParseIP(o.ServerName) == nil && len(validation.IsDNS1123Subdomain(o.ServerName)) > 0 {
		return fmt.Errorf("--server-name %q is neither a DNS name nor an address", o.ServerName)
	}
	return nil
}

// resolvePaths makes the paths absolute and checks what the API server would
// report only in its log.
func (o *Options) resolvePaths() error {
	if o.DataDir == "" {
		return errors.New("--data-dir is missing: name a directory that may hold the server's state")
	}
	for _, arg := range o.APIServerArgs {
		if !strings.HasPrefix(arg, "--") {
			return fmt.Errorf("--apiserver-arg %q is not a flag: write --apiserver-arg=--name=value", arg)
		}
	}
	for _, path := range []*string{&o.DataDir, &o.LogFile, &o.AuthorizationConfig} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("resolving path %q: %w", *path, err)
		}
		*path = absolute
	}
	if o.LogFile == "" {
		o.LogFile = filepath.Join(o.DataDir, "kube-local.log")
	}
	if o.AuthorizationConfig != "" {
		if _, err := os.Stat(o.AuthorizationConfig); err != nil {
			return fmt.Errorf("reading --authorization-config: %w", err)
		}
	}
	return nil
}
