package options

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestParseRefusesInvalidCommandLine(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no data directory":         {nil, "--data-dir is missing"},
		"unknown flag":              {[]string{"--data-dir", dir, "--colour"}, "unknown flag: --colour"},
		"an argument":               {[]string{"--data-dir", dir, "start"}, `unexpected argument "start"`},
		"address of a network":      {[]string{"--data-dir", dir, "--bind-address", "0.0.0.0"}, "is not a loopback address: use 127.0.0.1"},
		"name for an address":       {[]string{"--data-dir", dir, "--bind-address", "localhost"}, "is not a loopback address"},
		"name that is none":         {[]string{"--data-dir", dir, "--server-name", "a_b"}, "neither a DNS name nor an address"},
		"no address beside a name":  {[]string{"--data-dir", dir, "--server-name", "a", "--bind-address", "b"}, "is not an address"},
		"port out of range":         {[]string{"--data-dir", dir, "--port", "65536"}, "--port 65536 is out of range"},
		"negative port":             {[]string{"--data-dir", dir, "--port=-1"}, "--port -1 is out of range"},
		"argument that is no flag":  {[]string{"--data-dir", dir, "--apiserver-arg", "v=4"}, "write --apiserver-arg=--name=value"},
		"missing authorization":     {[]string{"--data-dir", dir, "--authorization-config", dir + "/none"}, "reading --authorization-config"},
		"user without a name":       {[]string{"--data-dir", dir, "--user", ":dev"}, "the name must be"},
		"user that leaves its home": {[]string{"--data-dir", dir, "--user", "../eve"}, "the name must be"},
		"user with a long name":     {[]string{"--data-dir", dir, "--user", strings.Repeat("a", 65)}, "the name must be"},
		"user with an empty group":  {[]string{"--data-dir", dir, "--user", "alice:dev,"}, "a group name must have"},
		"user twice":                {[]string{"--data-dir", dir, "--user", "alice", "--user", "alice:dev"}, "the name is taken"},
		"user who is the admin":     {[]string{"--data-dir", dir, "--user", "admin:dev"}, "the name is taken"},
		"account without a name":    {[]string{"--data-dir", dir, "--user", "system:serviceaccount:team"}, "system:serviceaccount:NAMESPACE:NAME"},
		"account of three parts":    {[]string{"--data-dir", dir, "--user", "system:serviceaccount:team:ci:x"}, "system:serviceaccount:NAMESPACE:NAME"},
		"account with a long name":  {[]string{"--data-dir", dir, "--user", "system:serviceaccount:team:" + strings.Repeat("a", 40)}, "at most 64"},
		"account of a user's name":  {[]string{"--data-dir", dir, "--user", "alice", "--user", "system:serviceaccount:team:alice"}, "the name is taken"},
		"user with many groups":     {[]string{"--data-dir", dir, "--user", "alice:" + strings.Repeat("g,", 100) + "g"}, "101 groups, at most 100"},
		"node of no name":           {[]string{"--data-dir", dir, "--node", "a.b"}, "the name must be"},
		"node with a long name":     {[]string{"--data-dir", dir, "--node", strings.Repeat("a", 53)}, "at most 52"},
		"node of a user's name":     {[]string{"--data-dir", dir, "--user", "alice", "--node", "alice"}, "the name is taken"},
		"node that is a component":  {[]string{"--data-dir", dir, "--node", "kube-proxy"}, "the name is taken"},
		"very many users":           {append([]string{"--data-dir", dir}, slices.Repeat([]string{"--user=alice"}, 1001)...), "at most 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(test.args, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Parse(%q) = %v, want an error with %q", test.args, err, test.want)
			}
		})
	}
}

func TestParseReadsUsersAndGroups(t *testing.T) {
	for name, test := range map[string]struct {
		value  string
		groups []string
	}{
		"alone":                  {"alice", nil},
		"with one group":         {"alice:dev", []string{"dev"}},
		"with several groups":    {"alice:dev,ops", []string{"dev", "ops"}},
		"with a group of colons": {"alice:system:masters,dev", []string{"system:masters", "dev"}},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := Parse([]string{"--data-dir", t.TempDir(), "--user", test.value}, &bytes.Buffer{})
			if err != nil {
				t.Fatal(err)
			}
			if len(options.Users) != 1 || options.Users[0].Name != "alice" || !slices.Equal(options.Users[0].Groups, test.groups) {
				t.Errorf("users = %+v, want alice in %q", options.Users, test.groups)
			}
		})
	}
}

func TestServiceAccountHasTokenGroups(t *testing.T) {
	options, err := Parse([]string{"--data-dir", t.TempDir(), "--user", "system:serviceaccount:team:ci"}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	u := options.Users[0]
	if u.Name != "system:serviceaccount:team:ci" || u.File != "ci" || !slices.Equal(u.Groups, []string{"system:serviceaccounts", "system:serviceaccounts:team"}) {
		t.Errorf("user = %+v", u)
	}
}

func TestNodeEnablesPodControllers(t *testing.T) {
	options, err := Parse([]string{"--data-dir", t.TempDir(), "--user", "alice", "--node", "one", "--node", "two"}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]ClientUser{}
	for _, user := range options.Users {
		files[user.File] = user
	}
	if two := files["two"]; two.Name != "system:node:two" || !slices.Equal(two.Groups, []string{"system:nodes"}) {
		t.Errorf("the kubelet is %+v", two)
	}
	if scheduler := files["kube-scheduler"]; scheduler.Name != "system:kube-scheduler" || scheduler.Groups != nil {
		t.Errorf("the scheduler is %+v", scheduler)
	}
	if !options.Nodes || len(files) != 6 {
		t.Errorf("options are %+v", options)
	}
	if options, err = Parse([]string{"--data-dir", t.TempDir(), "--user", "alice"}, &bytes.Buffer{}); err != nil || options.Nodes || len(options.Users) != 1 {
		t.Errorf("without nodes: %+v, %v", options, err)
	}
}

func TestNamedServerListensOnAllAddresses(t *testing.T) {
	for _, name := range []string{"kubernetes", "kube.example.org", "192.0.2.1", "2001:db8::1"} {
		options, err := Parse([]string{"--data-dir", t.TempDir(), "--server-name", name, "--bind-address", "0.0.0.0"}, &bytes.Buffer{})
		if err != nil || options.ServerName != name || !options.BindAddress.IsUnspecified() {
			t.Errorf("%s: %+v, %v", name, options, err)
		}
	}
}

func TestParseMakesPathsAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("authz.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := Parse([]string{"--data-dir", "state", "--authorization-config", "authz.yaml"}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{options.DataDir, options.LogFile, options.AuthorizationConfig} {
		if !filepath.IsAbs(path) {
			t.Errorf("%q is not absolute", path)
		}
	}
	if want := filepath.Join(options.DataDir, "kube-local.log"); options.LogFile != want {
		t.Errorf("log file = %q, want %q", options.LogFile, want)
	}
}

func TestHelpNamesEveryFlagAndIsNotFailure(t *testing.T) {
	var help bytes.Buffer
	if _, err := Parse([]string{"--help"}, &help); !errors.Is(err, pflag.ErrHelp) {
		t.Fatalf("error = %v, want ErrHelp", err)
	}
	for _, flag := range []string{"--data-dir", "--port", "--user", "--apiserver-arg", "--exit-with-stdin"} {
		if !strings.Contains(help.String(), flag) {
			t.Errorf("help does not name %s:\n%s", flag, &help)
		}
	}
}

func TestArgumentOverridesDefault(t *testing.T) {
	for name, test := range map[string]struct {
		defaults, given, want []string
	}{
		"nothing given":    {[]string{"--a=1", "--b=2"}, nil, []string{"--a=1", "--b=2"}},
		"another flag":     {[]string{"--a=1"}, []string{"--b=2"}, []string{"--a=1", "--b=2"}},
		"same flag":        {[]string{"--a=1", "--b=2"}, []string{"--a=3"}, []string{"--b=2", "--a=3"}},
		"same flag, bare":  {[]string{"--a=true"}, []string{"--a"}, []string{"--a"}},
		"flag given twice": {[]string{"--a=1"}, []string{"--a=2", "--a=3"}, []string{"--a=2", "--a=3"}},
		"name begins same": {[]string{"--a=1"}, []string{"--ab=2"}, []string{"--a=1", "--ab=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MergeArguments(test.defaults, test.given); !slices.Equal(got, test.want) {
				t.Errorf("MergeArguments(%q, %q) = %q, want %q", test.defaults, test.given, got, test.want)
			}
		})
	}
}
