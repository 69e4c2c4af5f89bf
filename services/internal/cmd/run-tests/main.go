package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runTests(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "run-tests:", err)
		os.Exit(1)
	}
}

func runTests(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run-tests", flag.ContinueOnError)
	root := flags.String("root", "", "directory of the checkout")
	suites := flags.String("suites", "unit", "comma-separated list of unit, integration, e2e")
	race := flags.Bool("race", false, "use the race detector for tests on servers, too: they take twice as long")
	untimed := flags.Bool("untimed", false, "accept slow tests: the machine does other work, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	results, err := newRunRecord(filepath.Join(dir, ".tmp", "test"))
	if err != nil {
		return err
	}
	r := runner{root: dir, out: os.Stdout, record: results, env: testEnvironment(dir), untimed: *untimed}
	if r.slow, err = readSlowTests(filepath.Join(dir, "scripts", "slow-tests.txt")); err != nil {
		return err
	}
	stages, err := planStages(dir, options{suites: strings.Split(*suites, ","), race: *race, seconds: results.seconds})
	if err != nil {
		return err
	}
	return r.runAll(ctx, stages)
}
