package system

import (
	"os/exec"
	"runtime"
)

// spawner starts all children from one thread, which lives as long as the system. For the kernel, the parent of a child
// is the thread that started it.
type spawner struct {
	commands chan *exec.Cmd
	results  chan error
}

func newSpawner() *spawner {
	s := &spawner{commands: make(chan *exec.Cmd), results: make(chan error)}
	go func() {
		runtime.LockOSThread()
		for cmd := range s.commands {
			setEnd(cmd)
			s.results <- cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	s.commands <- cmd
	return <-s.results
}

func (s *spawner) close() { close(s.commands) }
