package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/internal/version"
)

// Exit codes of every service.
const (
	exitFailed = 1
	exitUsage  = 2
)

// Main is the main function of every service:
//
//	func main() {
//		cfg := storesync.Defaults()
//		service.Main("store-sync", cfg.BindFlags, func(ctx context.Context) error { return storesync.Run(ctx, cfg) })
//	}
//
// The context ends at SIGINT or SIGTERM; a second signal kills the process. The exit code is 0 after an orderly
// shutdown, 1 if the service failed, and 2 if a flag or variable is invalid.
func Main(name string, flags func(*pflag.FlagSet), run func(context.Context) error) {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags(fs)
	os.Exit(serviceProgram{name: name, flags: fs, env: os.LookupEnv, out: os.Stdout, err: os.Stderr}.main(os.Args[1:], run))
}

const usage = `Usage: %s [flags]

Every flag can be a variable: --nats-url is %s.

Flags:
%s`

type serviceProgram struct {
	name     string
	flags    *pflag.FlagSet
	env      func(string) (string, bool)
	out, err io.Writer
}

func (p serviceProgram) main(args []string, run func(context.Context) error) int {
	p.flags.SortFlags = false
	p.flags.Usage = func() {}
	showVersion := p.flags.Bool("version", false, "print version and commit and exit")
	err := p.flags.Parse(args)
	if err == nil && p.flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: there are only flags", p.flags.Arg(0))
	}
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(p.out, usage, p.name, flagVariable("nats-url"), p.flags.FlagUsages())
		return 0
	}
	if err == nil {
		err = setFlagsFromEnv(p.flags, p.env)
	}
	if err != nil {
		fmt.Fprintf(p.err, "%s: %v\nSee %s --help.\n", p.name, err, p.name)
		return exitUsage
	}
	if *showVersion {
		fmt.Fprintln(p.out, p.name, version.CurrentBuild())
		return 0
	}
	log := slog.New(slog.NewJSONHandler(p.err, nil)).With("service", p.name)
	CaptureLibraryLogs(log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if err := run(ctx); err != nil {
		log.Error("service failed", "error", err)
		return exitFailed
	}
	return 0
}

// setFlagsFromEnv sets the flags that are not on the command line. An empty variable counts as unset.
func setFlagsFromEnv(fs *pflag.FlagSet, env func(string) (string, bool)) error {
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := env(flagVariable(f.Name))
		if !ok || value == "" || f.Changed || f.Name == "version" {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flagVariable(f.Name), err))
		}
	})
	return errors.Join(errs...)
}

// flagVariable returns the environment variable of a flag, such as ENTAIL_NATS_URL for nats-url.
func flagVariable(flag string) string {
	return "ENTAIL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
