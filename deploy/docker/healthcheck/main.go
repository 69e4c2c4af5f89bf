// Command healthcheck asks a program on this machine whether it is well: images that hold nothing else
// have no other program to ask with.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

const patience = 3 * time.Second

func main() {
	if err := check(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "healthcheck:", err)
		os.Exit(1)
	}
}

// check is nil when the URL answers 200.
func check(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: healthcheck URL")
	}
	target, err := url.Parse(args[0])
	if err != nil {
		return fmt.Errorf("reading the URL: %w", err)
	}
	if ip := net.ParseIP(target.Hostname()); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q is not on loopback: certificates are not checked, so nothing else is asked", target.Host)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody) //nolint:gosec // Loopback only.
	if err != nil {
		return err
	}
	// Who listens on loopback of a container is the program that the container is there for.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // Loopback only.
	defer client.CloseIdleConnections()
	response, err := client.Do(request) //nolint:gosec // Loopback only.
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", target, response.Status)
	}
	return nil
}
