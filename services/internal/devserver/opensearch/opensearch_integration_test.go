//go:build integration && linux

package opensearch

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/devserver"
)

// parentEnv makes this test binary start OpenSearch in the given directory, print its port and wait.
const parentEnv = "ENTAIL_TEST_PARENT_OF_OPENSEARCH"

const goneWithin = 10 * time.Second

func TestServerEndsWithKilledParent(t *testing.T) {
	if dir := os.Getenv(parentEnv); dir != "" {
		waitAsParent(t, dir)
		return
	}
	parent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), parentEnv+"="+serverDir(t))
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Error("the parent ended before it was ready")
	}
	killed := errors.Join(parent.Process.Kill(), parent.Wait())
	port, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the parent says %q: %v", line, killed)
	}
	for end := time.Now().Add(goneWithin); ; <-time.After(readyPoll) {
		if _, err = devserver.ReservePort("OpenSearch", port); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server goes on without its parent: %v", err)
		}
	}
}

func waitAsParent(t *testing.T, dir string) {
	t.Helper()
	home, err := FindInstallation()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Config{Home: home, Dir: dir, UnsafeCheapHashes: true})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", devserver.LoopbackAddress(s.Port()))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	_, _ = os.Stdout.WriteString(strconv.Itoa(s.Port()) + "\n")
	<-s.Done()
}
