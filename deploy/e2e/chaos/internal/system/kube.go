package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

func (s *System) kubeDir() string { return filepath.Join(s.cfg.Dir, "kube") }

// startKube starts the API server, and applies the kinds, policies and roles of Entail.
func (s *System) startKube(ctx context.Context) error {
	args := []string{"--data-dir", s.kubeDir(), "--port", strconv.Itoa(s.ports.kube), "--unsafe-no-fsync"}
	for _, service := range Services() {
		args = append(args, "--user", serviceAccountUser(service))
	}
	s.Kube = s.newProcess("kube", s.binaryPath("kube-local"), args...)
	if err := s.Kube.Start(); err != nil {
		return err
	}
	return pollUntil(ctx, func(ctx context.Context) error {
		for _, files := range []string{"crd/*.yaml", "admission/*.yaml", "base/namespace.yaml", "base/roles.yaml", "base/*/rbac.yaml"} {
			if err := s.applyManifests(ctx, filepath.Join(s.cfg.Checkout, "deploy", files)); err != nil {
				return err
			}
		}
		return nil
	})
}

// namespace holds the accounts of services.
const namespace = "entail-system"

// serviceAccountUser returns the user name of a service at the API server. It has the shipped rights.
func serviceAccountUser(s Service) string { return "system:serviceaccount:" + namespace + ":" + s.Name }

// applyManifests applies all manifests in the files that match a pattern.
func (s *System) applyManifests(ctx context.Context, pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("there are no manifests %s", pattern))
	}
	cfg, err := s.AdminConfig()
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := applyManifest(ctx, objects, mapper, manifest); err != nil {
			return fmt.Errorf("applying %s: %w", file, err)
		}
	}
	return nil
}

func applyManifest(ctx context.Context, objects dynamic.Interface, mapper *restmapper.DeferredDiscoveryRESTMapper, manifest []byte) error {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
	for {
		var object unstructured.Unstructured
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		api := dynamic.ResourceInterface(objects.Resource(mapping.Resource))
		if namespace := object.GetNamespace(); namespace != "" {
			api = objects.Resource(mapping.Resource).Namespace(namespace)
		}
		if _, err := api.Apply(ctx, object.GetName(), &object, metav1.ApplyOptions{FieldManager: "chaos", Force: true}); err != nil {
			return err
		}
	}
}

// writeKubeconfig writes a kubeconfig with which a service reaches the API server through a proxy.
func (s *System) writeKubeconfig(name string, service Service, through *Proxy) (string, error) {
	config, err := clientcmd.LoadFromFile(filepath.Join(s.kubeDir(), service.Name+".kubeconfig"))
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig of kube-local: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + through.Address()
	}
	file := filepath.Join(s.cfg.Dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	return file, nil
}
