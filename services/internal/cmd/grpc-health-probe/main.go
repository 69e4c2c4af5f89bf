// Command grpc-health-probe replaces the program grpc_health_probe in test images, which replace images that contain
// it. It supports the flags that docker-compose.yaml uses.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// probeTimeout bounds the time until the server answers.
const probeTimeout = 3 * time.Second

func main() {
	address := flag.String("addr", "", "host:port of the server")
	flag.Bool("tls", true, "talk TLS; it always does")
	ca := flag.String("tls-ca-cert", "", "file with the authority of the server's certificate")
	name := flag.String("tls-server-name", "", "name in that certificate")
	flag.Parse()
	if err := probeHealth(*address, *ca, *name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func probeHealth(address, ca, name string) error {
	trust, err := credentials.NewClientTLSFromFile(ca, name)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(trust))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("%s is %s", address, answer.GetStatus())
	}
	return nil
}
