package opensearch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// RunSecurityAdmin replaces all security documents of the server by the initial ones. It runs the tool of
// securityadmin.sh, which jobs of the OpenSearch operator also run.
func (s *Server) RunSecurityAdmin(ctx context.Context) error {
	tools := filepath.Join(s.cfg.Home, "plugins", plugin)
	libraries := strings.Join([]string{filepath.Join(tools, "*"), filepath.Join(s.cfg.Home, "lib", "*")}, string(os.PathListSeparator))
	credentials := filepath.Join(s.cfg.Dir, secrets)
	command := exec.CommandContext(ctx, javaProgram(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Dorg.apache.logging.log4j.simplelog.StatusLogger.level=OFF",
		"-cp", libraries, "org.opensearch.security.tools.SecurityAdmin",
		"-cd", filepath.Join(s.cfg.Dir, security), "-icl", "-h", "localhost", "-p", strconv.Itoa(s.cfg.Port),
		"-cacert", filepath.Join(credentials, "ca.pem"), "-cert", filepath.Join(credentials, "admin.pem"), "-key", filepath.Join(credentials, "admin-key.pem"))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("running securityadmin: %w\n%s", errors.Join(err, ctx.Err()), output[max(0, len(bytes.TrimSpace(output))-lastWords):])
	}
	return nil
}
