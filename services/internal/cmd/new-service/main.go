// Command new-service writes the skeleton of a service, and enters it wherever services are
// listed. `make new-service` runs it, and then generates what is generated.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "new-service:", err)
		os.Exit(1)
	}
}

// run takes the root of the checkout and the name of the service.
func run(args []string) error {
	if len(args) != 2 || args[1] == "" {
		return errors.New("which service? make new-service NAME=what-it-does")
	}
	tree, name := tree(args[0]), args[1]
	s, err := newService(tree, name)
	if err != nil {
		return err
	}
	files, err := s.skeleton(tree)
	if err != nil {
		return err
	}
	entries, err := s.entries(tree)
	if err != nil {
		return err
	}
	return tree.write(append(files, entries...))
}
