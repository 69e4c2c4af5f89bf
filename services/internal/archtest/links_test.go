package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInSlug = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// TestMarkdownLinksResolve checks the relative links of all Markdown files, with their anchors.
func TestMarkdownLinksResolve(t *testing.T) {
	checkout := filepath.Join(root, "..")
	count := 0
	err := filepath.WalkDir(checkout, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != checkout && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		for _, l := range link.FindAllStringSubmatch(withoutCodeBlocks(t, path), -1) {
			file, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(l[1], ":") {
				continue
			}
			count++
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %s: %v", path, l[1], err)
			} else if anchor != "" && filepath.Ext(target) == ".md" && !hasAnchor(withoutCodeBlocks(t, target), anchor) {
				t.Errorf("%s: link %s: got no such heading", path, l[1])
			}
		}
		return nil
	})
	if err != nil || count < 100 {
		t.Errorf("links: got %d, %v, want 100", count, err)
	}
}

// withoutCodeBlocks returns a document without its code blocks.
func withoutCodeBlocks(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return codeBlock.ReplaceAllString(string(text), "")
}

func hasAnchor(text, anchor string) bool {
	if strings.Contains(text, `<a name="`+anchor+`"`) || strings.Contains(text, `<a id="`+anchor+`"`) {
		return true
	}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		if strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}
