//go:build compose

package e2e

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// nothingIsTold searches for every secret in Docker's descriptions of containers and images, in the logs, and in the
// resolved compose file.
func nothingIsTold(t *testing.T) {
	t.Helper()
	containers := strings.Fields(compose(t, "ps", "--all", "--quiet"))
	told := docker(t, append([]string{"inspect"}, containers...)...) + compose(t, "logs") + compose(t, "--profile", "*", "config")
	for image := range strings.FieldsSeq(docker(t, append([]string{"inspect", "--format", "{{.Image}}"}, containers...)...)) {
		told += docker(t, "history", "--no-trunc", image)
	}
	all := secrets(t)
	for where, secret := range all {
		if len(secret) < 16 || strings.Contains(told, secret) {
			t.Errorf("the secret in %s is in what Docker tells of containers, or is none", where)
		}
	}
	// Seeds of users, keys of servers, OpenFGA's key, a password, and the key of each account at the API server.
	if len(all) < 20 || !strings.Contains(told, "POSTGRES_PASSWORD_FILE") {
		t.Errorf("%d secrets were looked for, in %d bytes", len(all), len(told))
	}
}

// data copies the data of a container, and returns the folder.
func data(t *testing.T, of string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), of)
	compose(t, "cp", of+":/data", dir)
	return dir
}

// secrets returns all secrets that `init` and the API server created, by path. For a private key, it returns one line.
func secrets(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	key := regexp.MustCompile(`(?m)PRIVATE KEY-----\n(.+)$|(?:client-key-data|token): (\S+)$`)
	for _, dir := range []string{data(t, "init"), data(t, "kubernetes")} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.Contains(path, "/etcd/") {
				return err
			}
			text, err := os.ReadFile(path)
			if name := entry.Name(); name == "seed" || name == "password" || name == "token" {
				all[path] = strings.TrimSpace(string(text))
			} else if found := key.FindSubmatch(text); found != nil {
				all[path] = cmp.Or(string(found[1]), string(found[2]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// imagesHoldNothingElse requires that every layer has only the files that docs/operate/images.md lists.
func imagesHoldNothingElse(t *testing.T) {
	t.Helper()
	images, tag := map[string]bool{}, os.Getenv("ENTAIL_VERSION")
	for image := range strings.FieldsSeq(docker(t, "image", "ls", "--filter", "reference=entail/*:"+tag, "--format", "{{.Repository}}")) {
		images[strings.TrimPrefix(image, "entail/")] = true
	}
	if len(images) < 8 || !images["kube-local"] || !images["entail"] {
		t.Fatalf("images are %v", images)
	}
	for name := range images {
		allowed := regexp.MustCompile(`^(data|bus|bin|bin/` + name + `|bin/healthcheck|sbom\.cdx\.json|etc|etc/ssl|etc/ssl/certs|etc/ssl/certs/ca-certificates\.crt)/?$`)
		for _, file := range filesOf(t, "entail/"+name+":"+tag) {
			if !allowed.MatchString(file) {
				t.Errorf("the image of %s has %s", name, file)
			}
		}
	}
}

// anImageThatIsBuiltAgainIsTheSame builds an image without cached layers, and requires the same ID.
func anImageThatIsBuiltAgainIsTheSame(t *testing.T) {
	t.Helper()
	id := func(tag string) string {
		return docker(t, "image", "inspect", "--format", "{{.Id}}", "entail/watcher:"+tag)
	}
	t.Setenv("TAG", "again")
	t.Setenv("CACHE", "none")
	command(t, root, "scripts/images.sh", "watcher")
	if first, again := id(os.Getenv("ENTAIL_VERSION")), id("again"); first != again {
		t.Errorf("the image is %s, and %s when it is built again", first, again)
	}
	docker(t, "image", "rm", "entail/watcher:again")
}

// filesOf lists the files in the layers of an image.
func filesOf(t *testing.T, image string) (names []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "docker", "save", image)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for saved := tar.NewReader(out); ; {
		blob, err := saved.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for layer := tar.NewReader(saved); blob.Typeflag == tar.TypeReg; {
			file, err := layer.Next()
			if err != nil { // The end of a layer, or a blob that is no layer.
				break
			}
			names = append(names, file.Name)
		}
	}
	if err := cmd.Wait(); err != nil || len(names) < 4 {
		t.Fatalf("image %s has %q, %v", image, names, err)
	}
	return names
}

// onTheBus connects to NATS as one of its users. Permission errors are sent to refused.
func onTheBus(t *testing.T, who string, refused chan<- error) *nats.Conn {
	t.Helper()
	dir := filepath.Join(data(t, "init"), "nats-"+who)
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(authority)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(dir, "seed"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect("tls://"+containerAddress(t, "nats")+":4222", key, nats.Secure(&tls.Config{RootCAs: trust, ServerName: "nats", MinVersion: tls.VersionTLS12}),
		nats.CustomInboxPrefix("_INBOX_"+who), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// theBusIsGuarded tries forbidden operations as tuple-sync.
func theBusIsGuarded(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	refused := make(chan error, 10)
	conn := onTheBus(t, "tuple-sync", refused)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(ctx, "ENTAIL_CHANGES"); err != nil {
		t.Errorf("it may not even look at the stream of changes: %v", err)
	}
	for what, try := range map[string]func() error{
		"publish a change": func() error { return conn.Publish("entail.changes.local.core.stores._.demo", []byte("forged")) },
		"delete a stream":  func() error { return conn.Publish("$JS.API.STREAM.DELETE.ENTAIL_CHANGES", nil) },
		"purge a stream":   func() error { return conn.Publish("$JS.API.STREAM.PURGE.ENTAIL_CHANGES", nil) },
		"change a stream":  func() error { return conn.Publish("$JS.API.STREAM.UPDATE.ENTAIL_CHANGES", []byte("{}")) },
	} {
		if err := cmp.Or(try(), conn.FlushWithContext(ctx)); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-ctx.Done():
			t.Fatalf("tuple-sync may %s", what)
		}
	}
}
