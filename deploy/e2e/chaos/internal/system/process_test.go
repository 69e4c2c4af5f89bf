package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKillDuringStopIsNotFailure(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	s := newChildSpawner()
	defer s.close()
	p := &Process{
		Name: "deaf", path: "/bin/sh", args: []string{"-c", `trap "echo asked" TERM; echo ready; while :; do sleep 0.1; done`}, log: log, spawner: s,
		failed: func(err error) { t.Error(err) },
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	says := func(word string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
			text, err := os.ReadFile(log)
			if strings.Contains(string(text), word) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("it does not say %q: %s (%v)", word, text, err)
			}
		}
	}
	says("ready")
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop() }()
	says("asked")
	p.Kill()
	if err := <-stopped; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestFreezeReturnsWhenProcessIsStopped(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	s := newChildSpawner()
	defer s.close()
	p := &Process{
		Name: "busy", path: "/bin/sh", args: []string{"-c", `while :; do echo busy; done`}, log: log, spawner: s,
		failed: func(err error) { t.Error(err) },
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for began := size(); size() == began; <-time.After(time.Millisecond) {
	}
	p.Freeze()
	frozen := size()
	p.Kill()
	if got := size(); got != frozen {
		t.Errorf("got %d bytes from a frozen process, want none", got-frozen)
	}
}
