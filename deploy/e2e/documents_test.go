//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notRun marks a block of a document that no test runs. The reason follows.
const notRun = "<!-- not run: "

// step is a shell block without output, or one command with its output.
type step struct {
	line          int
	command, want string
}

// documentsWorkAsPrinted runs every shell block of README and the guides, one after another. A command with output
// runs until the output matches. The samples are applied.
func documentsWorkAsPrinted(t *testing.T, m *machine, state string) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "guides", "*.md"))
	if err != nil || len(pages) < 6 {
		t.Fatalf("guides: got %q, %v, want 6", pages, err)
	}
	shell, blocks, exempt := newShell(t, m, state), 0, 0
	for _, page := range append([]string{filepath.Join(root, "README.md")}, pages...) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			steps, found, left := readSteps(t, page)
			blocks, exempt = blocks+found, exempt+left
			for _, s := range steps {
				s.run(t, shell)
			}
		})
	}
	if exempt*20 > blocks {
		t.Errorf("not run: got %d of %d shell blocks, want at most 5 %%", exempt, blocks)
	}
}

// readSteps returns the steps of a page, the number of its shell blocks, and how many of them are not run.
func readSteps(t *testing.T, page string) (steps []step, blocks, exempt int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var block, before string
	for i, line := range strings.Split(string(text), "\n") {
		isFence := strings.HasPrefix(line, "```")
		switch language := strings.TrimPrefix(line, "```"); {
		case isFence && block != "":
			block, before = "", ""
		case isFence:
			if block = language; block == "sh" || block == "console" {
				blocks++
				if strings.HasPrefix(before, notRun) {
					block, exempt = "skipped", exempt+1
				}
			}
			switch block {
			case "sh":
				steps = append(steps, step{line: i + 2})
			case "":
				block = "text"
			}
		case block == "sh":
			steps[len(steps)-1].command += line + "\n"
		case block == "console" && strings.HasPrefix(line, "$ "):
			steps = append(steps, step{line: i + 1, command: line[2:]})
		case block == "console" && strings.HasSuffix(steps[len(steps)-1].command, `\`):
			steps[len(steps)-1].command += "\n" + line
		case block == "console":
			steps[len(steps)-1].want += line + "\n"
		case line != "":
			before = line
		}
	}
	return steps, blocks, exempt
}

// run runs the command of a step. Without output, the command must succeed.
func (s step) run(t *testing.T, shell func(context.Context, string) (string, error)) {
	t.Helper()
	if s.want == "" {
		if out, err := shell(t.Context(), s.command); err != nil {
			t.Fatalf("line %d: %s\n%v\n%s", s.line, s.command, err, out)
		}
		return
	}
	matches := outputPattern(s.want)
	eventually(t, soon, fmt.Sprintf("line %d: %s prints what the page shows", s.line, s.command), func(ctx context.Context) error {
		if out, _ := shell(ctx, s.command); !matches.MatchString(out + "\n") {
			return fmt.Errorf("got\n%s\nwant\n%s", out, s.want)
		}
		return nil
	})
}

// outputPattern matches output whatever its column widths, times and durations are. "..." stands for a part of a line, and on a
// line of its own for any lines, or none.
func outputPattern(want string) *regexp.Regexp {
	duration := regexp.MustCompile(`^([0-9:.]+:[0-9.]+|\+[0-9.]+|[0-9.]+(s|ms|m))$`)
	pattern := `^\s*`
	for line := range strings.Lines(want) {
		if strings.TrimSpace(line) == "..." {
			pattern += `(.*\n)*\s*`
			continue
		}
		words := strings.Fields(line)
		for i, word := range words {
			if words[i] = strings.ReplaceAll(regexp.QuoteMeta(word), `\.\.\.`, ".*"); duration.MatchString(word) {
				words[i] = `\S+`
			}
		}
		// JSON of protobuf messages has a space after each comma or none, which depends on the program's build.
		pattern += strings.ReplaceAll(strings.Join(words, `\s+`), `,\s+`, `,\s*`) + `\s*\n\s*`
	}
	return regexp.MustCompile(pattern + "$")
}

// newShell returns a function that runs bash commands, in a folder with links to the state, the programs and the samples. Folder,
// functions and exported variables last. `make TARGET` only checks that the target exists.
func newShell(t *testing.T, m *machine, state string) func(context.Context, string) (string, error) {
	t.Helper()
	dir, checkout, programs := t.TempDir(), absolute(t, root), filepath.Dir(entail(t).Path)
	for name, target := range map[string]string{".entail": state, "bin": programs, "deploy": filepath.Join(checkout, "deploy")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(t.TempDir(), "environment")
	begin := fmt.Sprintf("cd %q\nmake() { env -u MAKEFLAGS make -n -C %q \"$@\" >/dev/null; }\n", dir, checkout)
	if err := os.WriteFile(kept, []byte(begin), 0o600); err != nil {
		t.Fatal(err)
	}
	addresses := strings.NewReplacer("http://127.0.0.1:18093", m.TupleService, "https://127.0.0.1:19200", m.OpenSearch)
	env := append(os.Environ(), append(m.servers(), "PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+m.Kubeconfig)...)
	return func(ctx context.Context, command string) (string, error) {
		script := fmt.Sprintf(". %[1]q\nset -e\n%[2]s\n{ printf 'cd %%q\\n' \"$PWD\"; declare -f; export -p; } >%[1]q", kept, addresses.Replace(command))
		cmd := exec.CommandContext(ctx, "bash", "-c", script)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
