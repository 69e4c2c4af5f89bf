// Package leak finds secrets in files, for tests.
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

// FindSecrets searches all files for secrets: in plain text, in hex, escaped for URLs, and in base64 at any offset. It
// returns the path and encoding of each occurrence, without the secret. It does not decompress data.
func FindSecrets(files fs.FS, secrets ...string) ([]string, error) {
	forms := map[string][]byte{}
	for i, secret := range secrets {
		for name, form := range encodingsOf(secret) {
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

// encodingsOf returns the encodings of a secret by name.
func encodingsOf(secret string) map[string]string {
	forms := map[string]string{
		"plain": secret, hexForm: hex.EncodeToString([]byte(secret)), "URL": url.QueryEscape(secret), "URL path": url.PathEscape(secret),
	}
	for ahead := range 3 { // The offset matters, because base64 encodes three bytes as four characters.
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64 of URLs": base64.RawURLEncoding} {
			encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", ahead) + secret))
			from := (ahead*8 + 5) / 6           // The first characters also hold bits of earlier bytes.
			to := (ahead + len(secret)) * 8 / 6 // The last characters may also hold bits of later bytes.
			forms[fmt.Sprintf("%s after %d", name, ahead)] = encoded[from:to]
		}
	}
	return forms
}
