// Command chaos runs Entail as processes on real servers, strikes it, and checks that it ends in the declared state.
// docs/design/reliability.md describes the campaign and its limits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/campaign"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

var errFound = errors.New("findings")

func run(ctx context.Context, args []string, out io.Writer) error {
	cfg, list, err := parseFlags(args, out)
	if err != nil || list {
		return err
	}
	report, err := campaign.Run(ctx, cfg)
	return findingsError(report, errors.Join(err, report.WriteText(out)))
}

// findingsError returns an error for a campaign with findings, so that the exit code is 1.
func findingsError(report *campaign.Report, err error) error {
	if n := len(report.Findings); err == nil && n > 0 {
		return fmt.Errorf("%w: %d", errFound, n)
	}
	return err
}

// parseFlags reads the command line. With -list it only lists the blows.
func parseFlags(args []string, out io.Writer) (cfg campaign.Config, list bool, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	var blows string
	flags.StringVar(&cfg.System.Checkout, "checkout", ".", "where bin/ and deploy/ are")
	flags.StringVar(&cfg.System.Dir, "dir", filepath.Join(".tmp", "chaos"), "where state and logs go")
	flags.IntVar(&cfg.System.Nodes, "nodes", 3, "NATS servers: 1, or 3 with three copies of everything")
	flags.IntVar(&cfg.System.Replicas, "replicas", 2, "replicas of every service")
	flags.Uint64Var(&cfg.Seed, "seed", uint64(time.Now().UnixNano()), "decides about operations and blows")
	flags.IntVar(&cfg.First, "episode", 1, "which episode of the seed to begin with")
	flags.DurationVar(&cfg.For, "for", 30*time.Minute, "how long to go on")
	flags.IntVar(&cfg.Rounds, "rounds", 0, "least number of rounds; the campaign goes on after -for until it is reached")
	flags.DurationVar(&cfg.Settle, "settle", 150*time.Second, "how long a system may take to come to rest")
	flags.IntVar(&cfg.Findings, "findings", 0, "end after so many (0: never)")
	flags.StringVar(&blows, "blows", "all", "blows to choose from, by name, separated by commas; safe are those that are known to be survived")
	flags.BoolVar(&list, "list", false, "list the blows and end")
	if err := flags.Parse(args); err != nil {
		return cfg, false, err
	}
	cfg.Out = out
	if list {
		return cfg, true, printFaults(out)
	}
	if cfg.Blows, err = chooseFaults(blows); err != nil {
		return cfg, false, err
	}
	return cfg, false, validateConfig(cfg)
}

func validateConfig(cfg campaign.Config) error {
	switch {
	case cfg.System.Nodes != 1 && cfg.System.Nodes != 3:
		return fmt.Errorf("-nodes %d: use 1 or 3", cfg.System.Nodes)
	case cfg.System.Replicas < 1 || cfg.System.Replicas > 3:
		return fmt.Errorf("-replicas %d: use 1 to 3", cfg.System.Replicas)
	case cfg.First < 1:
		return fmt.Errorf("-episode %d: the first is 1", cfg.First)
	}
	if len(nemesis.FaultsPossibleFor(cfg.Blows, nemesis.SystemShape{Nodes: cfg.System.Nodes, Replicas: cfg.System.Replicas})) == 0 {
		return errors.New("none of these blows can strike so few NATS servers and replicas: use more, or other blows (-list)")
	}
	return checkBinaries(cfg.System)
}

func checkBinaries(cfg system.Config) error {
	names := []string{"kube-local", "nats-server", "openfga"}
	for _, s := range system.Services() {
		names = append(names, s.Name)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(cfg.Checkout, "bin", name)); err != nil {
			return fmt.Errorf("%w: run `make chaos`, which builds it", err)
		}
	}
	return nil
}

// chooseFaults returns the blows of these names, or all, or the safe ones.
func chooseFaults(names string) ([]nemesis.Fault, error) {
	switch names {
	case "all":
		return nemesis.AllFaults(), nil
	case "safe":
		return nemesis.SurvivedFaults(), nil
	}
	blows, unknown := nemesis.FaultsByName(strings.Split(names, ","))
	if len(unknown) > 0 {
		return nil, fmt.Errorf("-blows: there is no %s; -list lists all", strings.Join(unknown, ", "))
	}
	return blows, nil
}

func printFaults(out io.Writer) error {
	for _, b := range nemesis.AllFaults() {
		known := "survived"
		if b.Known != "" {
			known = "NOT survived yet: " + b.Known
		}
		if _, err := fmt.Fprintf(out, "%-15s %d+ NATS servers, %d+ replicas; %s\n", b.Name, b.Nodes, b.Replicas, known); err != nil {
			return err
		}
	}
	return nil
}
