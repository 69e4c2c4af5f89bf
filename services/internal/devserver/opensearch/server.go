package opensearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/entail-dev/entail/services/internal/devserver"
)

const (
	readyTimeout = 3 * time.Minute // Five seconds are enough unless the machine is busy.
	stopTimeout  = 30 * time.Second
	// archiveTimeout bounds a stop that writes the class data archive.
	archiveTimeout = 3 * time.Minute
	// lastWords bounds the part of the log, in bytes, that the error of a failed start contains.
	lastWords = 4 << 10
)

// Config configures OpenSearch.
type Config struct {
	// Home is the directory of the installation. See [FindInstallation].
	Home string
	// Dir holds all state: data, certificates, the administrator's password and the log.
	Dir string
	// Port is the port to listen on. With 0, a free port is used.
	Port int
	// UnsafeCheapHashes uses password hashes that are quick to compute and easy to guess.
	UnsafeCheapHashes bool
}

func (c *Config) passwordHashCost() int {
	if c.UnsafeCheapHashes {
		return bcrypt.MinCost
	}
	return productionCost
}

// productionCost is the bcrypt cost of password hashes, as the security plugin sets it by default.
const productionCost = 12

// Server is a running OpenSearch.
type Server struct {
	cfg         Config
	credentials *credentials
	password    string
	child       *devserver.ChildProcess
}

// Start starts OpenSearch and returns when it answers. The server ends with this process, even if this process is
// killed.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	return startServer(ctx, cfg, "")
}

// MakeClassArchive creates the class data archive of an installation. It starts and stops a server in dir.
func MakeClassArchive(ctx context.Context, home, dir string) error {
	made := filepath.Join(dir, "tmp", classArchiveFile)
	s, err := startServer(ctx, Config{Home: home, Dir: dir, UnsafeCheapHashes: true}, classArchive(made))
	if err != nil {
		return err
	}
	if err := s.stopWithin(archiveTimeout); err != nil {
		return err
	}
	data, err := os.ReadFile(made)
	if err != nil {
		return fmt.Errorf("creating the archive of classes: %w\n%s", err, s.logTail())
	}
	scratch := filepath.Join(home, classArchiveFile+".new")
	if err := os.WriteFile(scratch, data, 0o644); err != nil {
		return fmt.Errorf("storing the archive of classes: %w", err)
	}
	return os.Rename(scratch, filepath.Join(home, classArchiveFile))
}

func startServer(ctx context.Context, cfg Config, archived classArchive) (*Server, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %s", readyTimeout))
	defer cancel()
	var err error
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("starting OpenSearch: %w", err)
	}
	if cfg.Port, err = devserver.ReservePort("OpenSearch", cfg.Port); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg}
	if s.credentials, s.password, err = prepareFiles(cfg, time.Now()); err != nil {
		return nil, err
	}
	if err := s.launchProcess(archived); err != nil {
		return nil, err
	}
	if err := s.waitReady(ctx); err != nil {
		s.Kill()
		return nil, fmt.Errorf("starting OpenSearch in %s: %w\n%s", cfg.Dir, err, s.logTail())
	}
	return s, nil
}

func (s *Server) launchProcess(archived classArchive) error {
	log, err := os.OpenFile(filepath.Join(s.cfg.Dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("starting OpenSearch: %w", err)
	}
	defer log.Close() // The child has its own descriptor.
	command := exec.Command(javaProgram(), javaArguments(s.cfg.Home, s.cfg.Dir, archived)...)
	command.Dir, command.Env = s.cfg.Dir, []string{"PATH=" + os.Getenv("PATH")}
	command.Stdout, command.Stderr = log, log
	if err := dropPrivileges(command, s.cfg); err != nil {
		return err
	}
	s.child, err = devserver.StartChild(command)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("starting OpenSearch: %w: install Java 17 or 21, or set JAVA_HOME", err)
	}
	if err != nil {
		return fmt.Errorf("starting OpenSearch: %w", err)
	}
	return nil
}

// Done returns a channel that is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.child.Done() }

// HasEnded reports whether the server has ended.
func (s *Server) HasEnded() bool { return s.child.HasEnded() }

// Stop makes the server stop and waits for its end.
func (s *Server) Stop() error { return s.stopWithin(stopTimeout) }

// terminated is the exit code of a JVM after SIGTERM.
const terminated = 128 + int(syscall.SIGTERM)

func (s *Server) stopWithin(within time.Duration) error {
	if err := s.child.Stop(within); err != nil {
		return fmt.Errorf("stopping OpenSearch: %w", err)
	}
	var exit *exec.ExitError
	if err := s.child.Err(); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != terminated) {
		return fmt.Errorf("stopping OpenSearch: %w\n%s", err, s.logTail())
	}
	return nil
}

// Kill ends the server at once, as a crash would.
func (s *Server) Kill() { s.child.Kill() }

// logTail returns the end of the server's log.
func (s *Server) logTail() string {
	file, err := os.Open(filepath.Join(s.cfg.Dir, logFile))
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	data, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-lastWords), lastWords))
	return cmp.Or(string(data), fmt.Sprint("its log is empty: ", err))
}
