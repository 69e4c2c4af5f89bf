// Command kube-node is what runs pods beside kube-local: the kubelet, the scheduler, the
// proxy and the controllers of Kubernetes in one program, whose first argument says which.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/version" // The version is a metric of each.
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: kube-node kubelet|kube-scheduler|kube-controller-manager|kube-proxy [flags]")
		os.Exit(2)
	}
	command := newComponentCommand(os.Args[1])
	if command == nil {
		fmt.Fprintf(os.Stderr, "kube-node: %q is no component: kubelet, kube-scheduler, kube-controller-manager or kube-proxy\n", os.Args[1])
		os.Exit(2)
	}
	command.SetArgs(os.Args[2:])
	os.Exit(cli.Run(command))
}

// newComponentCommand makes the one that is asked for, and no other: each registers flags and features of the process.
func newComponentCommand(name string) *cobra.Command {
	switch name {
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kube-controller-manager":
		return controllers.NewControllerManagerCommand()
	case "kube-proxy":
		return proxy.NewProxyCommand()
	default:
		return nil
	}
}
