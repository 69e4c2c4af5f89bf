package main

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	serviceaccounts "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// How many keys of one controller are worked on at a time, and how soon the
// garbage collector follows owners in a kind that is new (the kube
// controller manager takes 30 seconds).
const (
	controllerWorkers = 5
	newKindsPeriod    = time.Second
	firstSyncTimeout  = 30 * time.Second
)

// controllers are those of the kube-controller-manager that the project
// relies on: owner references are followed, namespaces finish deleting,
// cluster roles aggregate, service accounts and their token Secrets exist.
type controllers struct {
	client     kubernetes.Interface
	metadata   metadata.Interface
	informers  informers.SharedInformerFactory
	metaOnly   metadatainformer.SharedInformerFactory
	signingKey *ecdsa.PrivateKey
	rootCA     []byte
}

func newControllers(i *clusterIdentity) (*controllers, error) {
	config, err := i.clientConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating client of the controllers: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating metadata client of the controllers: %w", err)
	}
	return &controllers{
		client:     client,
		metadata:   metadataClient,
		informers:  informers.NewSharedInformerFactory(client, 0),
		metaOnly:   metadatainformer.NewSharedInformerFactory(metadataClient, 0),
		signingKey: i.signingKey,
		rootCA:     config.CAData,
	}, nil
}

// run returns when the context has ended and every controller has stopped.
func (c *controllers) run(ctx context.Context) error {
	started := make(chan struct{})
	var loops []func(context.Context)
	for name, build := range map[string]func(context.Context, <-chan struct{}) (func(context.Context), error){
		"garbage collector":        c.newGarbageCollector,
		"namespace":                c.newNamespaceController,
		"cluster role aggregation": c.newClusterRoleController,
		"service account":          c.newServiceAccountController,
		"service account token":    c.newTokenController,
	} {
		loop, err := build(ctx, started)
		if err != nil {
			return fmt.Errorf("creating the %s controller: %w", name, err)
		}
		loops = append(loops, loop)
	}
	c.informers.Start(ctx.Done())
	c.metaOnly.Start(ctx.Done())
	close(started)

	var running sync.WaitGroup
	for _, loop := range loops {
		running.Go(func() { loop(ctx) })
	}
	running.Wait()
	c.informers.Shutdown()
	c.metaOnly.Shutdown()
	return nil
}

func (c *controllers) newGarbageCollector(ctx context.Context, started <-chan struct{}) (func(context.Context), error) {
	discovery := c.client.Discovery()
	collector, err := garbagecollector.NewGarbageCollector(ctx, c.client, c.metadata,
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery)),
		garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(c.informers, c.metaOnly), started)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		var both sync.WaitGroup
		both.Go(func() { collector.Run(ctx, controllerWorkers, firstSyncTimeout) })
		both.Go(func() { collector.Sync(ctx, discovery, newKindsPeriod) })
		both.Wait()
	}, nil
}

func (c *controllers) newNamespaceController(ctx context.Context, _ <-chan struct{}) (func(context.Context), error) {
	controller := namespace.NewNamespaceController(ctx, c.client, c.metadata,
		c.client.Discovery().ServerPreferredNamespacedResources,
		c.informers.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	return func(ctx context.Context) { controller.Run(ctx, controllerWorkers) }, nil
}

func (c *controllers) newClusterRoleController(context.Context, <-chan struct{}) (func(context.Context), error) {
	controller := clusterroleaggregation.NewClusterRoleAggregation(c.informers.Rbac().V1().ClusterRoles(), c.client.RbacV1())
	return func(ctx context.Context) { controller.Run(ctx, controllerWorkers) }, nil
}

func (c *controllers) newServiceAccountController(ctx context.Context, _ <-chan struct{}) (func(context.Context), error) {
	core := c.informers.Core().V1()
	controller, err := serviceaccounts.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(),
		c.client, serviceaccounts.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { controller.Run(ctx, 1) }, nil
}

func (c *controllers) newTokenController(ctx context.Context, _ <-chan struct{}) (func(context.Context), error) {
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, c.signingKey)
	if err != nil {
		return nil, err
	}
	core := c.informers.Core().V1()
	controller, err := serviceaccounts.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), c.client,
		serviceaccounts.TokensControllerOptions{TokenGenerator: generator, RootCA: c.rootCA})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { controller.Run(ctx, controllerWorkers) }, nil
}
