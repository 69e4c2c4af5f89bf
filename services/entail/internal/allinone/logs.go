package allinone

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxLogBytes bounds each log file, in bytes. A full file is renamed to NAME.log.old, and a new one begins.
const maxLogBytes = 32 << 20

// logs writes the log of each part to its own file, and warnings to the terminal as well.
type logs struct {
	dir      string
	terminal slog.Handler

	mu    sync.Mutex
	files []*logFile
}

func newLogs(dir string, terminal io.Writer) *logs {
	return &logs{dir: dir, terminal: slog.NewTextHandler(terminal, &slog.HandlerOptions{
		Level: slog.LevelWarn, ReplaceAttr: dropDateFromTime,
	})}
}

// dropDateFromTime removes the date from the time, because a terminal shows the present day.
func dropDateFromTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Value = slog.StringValue(a.Value.Time().Format(time.TimeOnly))
	}
	return a
}

// openPartLogger returns the logger of one part.
func (l *logs) openPartLogger(name string) (*slog.Logger, error) {
	file := &logFile{path: filepath.Join(l.dir, name+".log")}
	if err := file.rotateFile(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, file)
	return slog.New(slog.NewMultiHandler(slog.NewJSONHandler(file, nil), l.terminal)), nil
}

func (l *logs) closeLogs() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, file := range l.files {
		errs = append(errs, file.closeFile())
	}
	l.files = nil
	return errors.Join(errs...)
}

// logFile is a file of bounded size.
type logFile struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int
}

func (f *logFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size+len(p) > maxLogBytes {
		if err := f.rotateFile(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(p)
	f.size += n
	return n, err
}

// rotateFile begins a new file. It keeps the previous content in one old file.
func (f *logFile) rotateFile() error {
	if f.file != nil {
		_ = f.file.Close() // No data is lost: every write has reached the file.
	}
	if err := os.Rename(f.path, f.path+".old"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("rotate log %s: %w", f.path, err)
	}
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	f.file, f.size = file, 0
	return nil
}

func (f *logFile) closeFile() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}
