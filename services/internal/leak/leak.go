// Package leak finds secrets where none must be, for tests.
package leak

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
)

// Find searches all files for secrets: as they are, in hex, as part of a URL, and in base64 wherever they stand in
// what was encoded. It returns where one is, without saying it. What is compressed hides its content: that has to
// be searched as whoever reads it gets it.
func Find(files fs.FS, secrets ...string) ([]string, error) {
	forms := map[string][]byte{}
	for i, secret := range secrets {
		for name, form := range formsOf(secret) {
			forms[fmt.Sprintf("secret %d, %s", i, name)] = []byte(form)
		}
	}
	var found []string
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		lower := bytes.ToLower(data)
		for name, form := range forms {
			if bytes.Contains(data, form) || strings.HasSuffix(name, hexForm) && bytes.Contains(lower, form) {
				found = append(found, path+": "+name)
			}
		}
		return nil
	})
	return found, err
}

const hexForm = "hex"

// formsOf is how a secret may be written, by name.
func formsOf(secret string) map[string]string {
	forms := map[string]string{
		"plain": secret, hexForm: hex.EncodeToString([]byte(secret)), "URL": url.QueryEscape(secret), "URL path": url.PathEscape(secret),
	}
	for ahead := range 3 { // Three bytes become four characters: what is ahead decides which.
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64 of URLs": base64.RawURLEncoding} {
			encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", ahead) + secret))
			from := (ahead*8 + 5) / 6           // The first characters have bits of what is ahead,
			to := (ahead + len(secret)) * 8 / 6 // the last ones may have some of what comes after.
			forms[fmt.Sprintf("%s after %d", name, ahead)] = encoded[from:to]
		}
	}
	return forms
}
