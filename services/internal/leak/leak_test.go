package leak

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
)

func TestFindSecretsFindsEveryEncoding(t *testing.T) {
	const secret = "cobalt/Ferret+91 örbit?"
	planted := map[string]string{
		"plain":     "password: " + secret + "\n",
		"hex":       "x" + hex.EncodeToString([]byte(secret)),
		"HEX":       strings.ToUpper(hex.EncodeToString([]byte("a" + secret))),
		"URL":       "https://anna:" + url.QueryEscape(secret) + "@host",
		"URL path":  url.PathEscape(secret),
		"base64":    base64.StdEncoding.EncodeToString([]byte(secret)),
		"padded":    base64.StdEncoding.EncodeToString([]byte(secret + "\n")),
		"login":     base64.StdEncoding.EncodeToString([]byte("anna:" + secret)),
		"bearer":    base64.URLEncoding.EncodeToString([]byte("ann:" + secret + "more")),
		"in object": base64.StdEncoding.EncodeToString([]byte(`{"data":"` + secret + `"}`)),
	}
	for name, content := range planted {
		found, err := FindSecrets(fstest.MapFS{"deep/in/a/file": {Data: []byte(content)}}, "another one", secret)
		if err != nil || len(found) == 0 {
			t.Errorf("%s: not found, %v", name, err)
		}
		for _, leak := range found {
			if strings.Contains(leak, secret) || !strings.HasPrefix(leak, "deep/in/a/file: secret 1, ") {
				t.Errorf("%s: found %q; want the place alone", name, leak)
			}
		}
	}
	clean := fstest.MapFS{"file": {Data: []byte("cobalt/Ferret+91, örbit? " + base64.StdEncoding.EncodeToString([]byte("cobalt")))}}
	if found, err := FindSecrets(clean, secret); err != nil || len(found) > 0 {
		t.Errorf("without one: %v, %v", found, err)
	}
}
