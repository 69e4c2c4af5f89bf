// Command cluster-dns answers pods who ask for Services by name. It forwards nothing: what is no Service does not exist.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/entail-dev/entail/deploy/local/cmd/cluster-dns/internal/dns"
)

// maxQuery is the most that DNS sends in a datagram where nobody agreed on more.
const maxQuery = 512

func main() {
	kubeconfig := pflag.String("kubeconfig", "", "`file` that leads to the API server")
	listen := pflag.String("listen", "127.0.0.1:53", "`address` at which pods ask, by UDP")
	domain := pflag.String("domain", "cluster.local", "`name` that ends all names")
	pflag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *listen, *domain); err != nil {
		fmt.Fprintf(os.Stderr, "cluster-dns: %v\n", err)
		os.Exit(1) //nolint:gocritic // The process ends, and takes its signals with it.
	}
}

// run answers until the context ends.
func run(ctx context.Context, kubeconfig, listen, domain string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("preparing to talk to the API server: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	names := dns.ServiceResolver{Services: factory.Core().V1().Services().Lister(), Slices: factory.Discovery().V1().EndpointSlices().Lister()}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	var listener net.ListenConfig
	conn, err := listener.ListenPacket(ctx, "udp", listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return serveQueries(conn, domain, names)
}

// serveQueries answers one after the other, from memory, until the connection is closed.
func serveQueries(conn net.PacketConn, domain string, names dns.AddressResolver) error {
	query := make([]byte, maxQuery)
	for {
		n, from, err := conn.ReadFrom(query)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading from the network: %w", err)
		}
		if answer, err := dns.AnswerQuery(query[:n], domain, names); err == nil { // Whoever sends something else gets nothing.
			_, _ = conn.WriteTo(answer, from)
		}
	}
}
