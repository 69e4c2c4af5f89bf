package deployspec

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/internal/golden"
	"github.com/entail-dev/entail/services/internal/rbac"
)

const root = "../../../"

func TestShippedManifestsAreGenerated(t *testing.T) {
	files, err := GenerateManifests()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		golden.CheckFile(t, filepath.Join(root, "deploy", name), want)
	}
}

func TestEveryAccountHasWorkload(t *testing.T) {
	var accounts, workloads []string
	for _, account := range rbac.ServiceAccounts() {
		accounts = append(accounts, account.Service)
	}
	for _, w := range Workloads() {
		workloads = append(workloads, w.Service)
		if w.Memory < 128 {
			t.Errorf("%s may have %d MiB", w.Service, w.Memory)
		}
		_, err := os.Stat(filepath.Join(root, "deploy/base", w.Service, "admission.yaml"))
		if w.Admission != (err == nil) {
			t.Errorf("%s answers the API server: %t, but its admission.yaml: %v", w.Service, w.Admission, err)
		}
	}
	slices.Sort(accounts)
	slices.Sort(workloads)
	if !slices.Equal(accounts, workloads) {
		t.Errorf("accounts are %q, workloads %q", accounts, workloads)
	}
}

// TestEveryContractHasRoute verifies that the routes include every API in proto.
func TestEveryContractHasRoute(t *testing.T) {
	protos, err := filepath.Glob(root + "proto/entail/*/v1/*.proto")
	if err != nil || len(protos) == 0 {
		t.Fatalf("no contracts: %v", err)
	}
	var want, got []string
	for _, proto := range protos {
		text, err := os.ReadFile(proto)
		if err != nil {
			t.Fatal(err)
		}
		pkg := regexp.MustCompile(`(?m)^package (\S+);`).FindSubmatch(text)
		for _, service := range regexp.MustCompile(`(?m)^service (\w+) `).FindAllSubmatch(text, -1) {
			want = append(want, string(pkg[1])+"."+string(service[1]))
		}
	}
	for _, w := range Workloads() {
		got = append(got, w.Serves...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("served are %q, contracts %q", got, want)
	}
}
