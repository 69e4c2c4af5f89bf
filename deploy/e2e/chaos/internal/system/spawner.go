package system

import (
	"os/exec"
	"runtime"
)

// childSpawner starts all children from one thread, which lives as long as the system. For the kernel, the parent of a child
// is the thread that started it.
type childSpawner struct {
	commands chan *exec.Cmd
	results  chan error
}

func newChildSpawner() *childSpawner {
	s := &childSpawner{commands: make(chan *exec.Cmd), results: make(chan error)}
	go func() {
		runtime.LockOSThread()
		for cmd := range s.commands {
			setEnd(cmd)
			s.results <- cmd.Start()
		}
	}()
	return s
}

func (s *childSpawner) start(cmd *exec.Cmd) error {
	s.commands <- cmd
	return <-s.results
}

func (s *childSpawner) close() { close(s.commands) }
