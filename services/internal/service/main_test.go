package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// runProgram runs a program with one additional flag, --greeting.
func runProgram(args []string, env map[string]string, run func(context.Context, string) error) (code int, out, errs string) {
	var greeting string
	var stdout, stderr bytes.Buffer
	fs := pflag.NewFlagSet("test-sync", pflag.ContinueOnError)
	fs.StringVar(&greeting, "greeting", "hello", "what to say")
	code = serviceProgram{name: "test-sync", flags: fs, env: environment(env), out: &stdout, err: &stderr}.main(args, func(ctx context.Context) error {
		return run(ctx, greeting)
	})
	return code, stdout.String(), stderr.String()
}

func TestMainSetsExitCode(t *testing.T) {
	broken := errors.New("broken")
	tests := map[string]struct {
		args      []string
		env       map[string]string
		run       error
		code      int
		out, errs string
	}{
		"success":           {code: 0},
		"failure":           {run: broken, code: 1, errs: `"msg":"service failed","service":"test-sync","error":"broken"`},
		"help":              {args: []string{"--help"}, code: 0, out: "ENTAIL_NATS_URL"},
		"version":           {args: []string{"--version"}, code: 0, out: "test-sync "},
		"unknown flag":      {args: []string{"--nonsense"}, code: 2, errs: "unknown flag: --nonsense\nSee test-sync --help."},
		"argument":          {args: []string{"nonsense"}, code: 2, errs: `unexpected argument "nonsense"`},
		"variable is used":  {env: map[string]string{"ENTAIL_GREETING": "hello"}, code: 0},
		"not for --version": {env: map[string]string{"ENTAIL_VERSION": "v1"}, code: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, errs := runProgram(test.args, test.env, func(context.Context, string) error { return test.run })
			if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(errs, test.errs) {
				t.Fatalf("code %d, want %d\nout %s\nerr %s", code, test.code, out, errs)
			}
		})
	}
}

func TestFlagsOverrideEnvironment(t *testing.T) {
	env := map[string]string{"ENTAIL_GREETING": "from the environment"}
	for want, args := range map[string][]string{"from the environment": nil, "from the flag": {"--greeting=from the flag"}} {
		runProgram(args, env, func(_ context.Context, greeting string) error {
			if greeting != want {
				t.Errorf("greeting is %q, want %q", greeting, want)
			}
			return nil
		})
	}
	runProgram(nil, map[string]string{"ENTAIL_GREETING": ""}, func(_ context.Context, greeting string) error {
		if greeting != "hello" {
			t.Errorf("an empty variable gives %q", greeting)
		}
		return nil
	})
}

func TestInvalidVariableIsNamed(t *testing.T) {
	cfg, fs := Defaults(), pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	err := setFlagsFromEnv(fs, environment(map[string]string{"ENTAIL_RESYNC": "soon", "ENTAIL_LOG_LEVEL": "loud"}))
	if err == nil || !strings.Contains(err.Error(), "ENTAIL_RESYNC") || !strings.Contains(err.Error(), "ENTAIL_LOG_LEVEL") {
		t.Fatalf("got %v", err)
	}
}

func TestMainCancelsContextOnSignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		code, _, errs := runProgram(nil, nil, func(ctx context.Context, _ string) error {
			if err := syscall.Kill(syscall.Getpid(), signal); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
		if code != 0 {
			t.Errorf("%v ends with %d: %s", signal, code, errs)
		}
	}
}

func TestCaptureLibraryLogsLowersLevel(t *testing.T) {
	var log bytes.Buffer
	CaptureLibraryLogs(slog.New(slog.NewJSONHandler(&log, nil)))
	t.Cleanup(func() { CaptureLibraryLogs(slog.New(slog.DiscardHandler)) })
	klog.Background().Error(errors.New("watch ended"), "lost")
	klog.Background().Info("chatter")
	klog.Warning("chatter")
	klog.Flush()
	if got := log.String(); !strings.Contains(got, `"level":"WARN","msg":"lost","err":"watch ended"`) || strings.Contains(got, "chatter") {
		t.Fatalf("log is %s", got)
	}
}
