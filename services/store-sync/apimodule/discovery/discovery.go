// Package discovery lists the API server's resources in the configured group-versions, and makes one module for each.
// It calls the API server only after a CustomResourceDefinition of these groups has changed, or after a failed call.
package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// ServerResources reads the API server's discovery. [kube.ErrNotServed] means that the group-version does not exist.
type ServerResources interface {
	DiscoverResources(ctx context.Context, groupVersion string) ([]metav1.APIResource, error)
}

// CRDReader reads CustomResourceDefinitions from the informer. The API server's discovery lags a moment behind them.
type CRDReader interface {
	// ServedResources lists the resources of the definitions that are served in a group-version.
	ServedResources(gv schema.GroupVersion) []plan.APIResource
	// IsDefinitionDeleted reports whether the definition of a resource was deleted.
	IsDefinitionDeleted(resource plan.APIResource) bool
}

// errBehind means that discovery does not list a defined resource yet.
var errBehind = fault.Unavailable(errors.New("the API server does not serve it yet"))

// Discovery holds the resources found and their modules. Create it with [New].
type Discovery struct {
	cfg         Config
	api         ServerResources
	definitions CRDReader
	// changes counts the calls of Invalidate.
	changes atomic.Uint64

	// asking is held during a refresh. asked is the value of changes before the last complete one.
	asking sync.Mutex
	asked  uint64

	mu      sync.Mutex
	found   map[string][]plan.APIResource
	modules []model.Module
}

// New returns a Discovery that has found nothing yet.
func New(cfg Config, api ServerResources, definitions CRDReader) *Discovery {
	d := &Discovery{cfg: cfg, api: api, definitions: definitions, found: map[string][]plan.APIResource{}}
	d.Invalidate()
	return d
}

// IsConfiguredGroup reports whether resources of the group can go into models.
func (d *Discovery) IsConfiguredGroup(group string) bool {
	return slices.ContainsFunc(d.groupVersions(), func(name string) bool { return strings.HasPrefix(name, group+"/") })
}

// Invalidate makes the next [Discovery.Refresh] call the API server.
func (d *Discovery) Invalidate() { d.changes.Add(1) }

// DiscoveredModules returns one module for each resource found, and reports whether every group-version has answered
// once.
func (d *Discovery) DiscoveredModules() ([]model.Module, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.modules, len(d.found) == len(d.groupVersions())
}

// AccountType returns the type that a core module must define.
func (d *Discovery) AccountType() string { return d.cfg.AccountType }

// Refresh calls the API server if Invalidate was called since the last complete refresh. A group-version that fails
// keeps its last resources, and the next Refresh tries all of them again.
func (d *Discovery) Refresh(ctx context.Context) error {
	d.asking.Lock()
	defer d.asking.Unlock()
	changes := d.changes.Load()
	if d.asked == changes {
		return nil
	}
	var errs []error
	for _, name := range d.groupVersions() {
		resources, err := d.listResources(ctx, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d.mu.Lock()
		d.found[name] = resources
		d.mu.Unlock()
	}
	d.mu.Lock()
	d.modules = d.cfg.modulesOfResources(d.found)
	d.mu.Unlock()
	if len(errs) == 0 {
		d.asked = changes
	}
	return errors.Join(errs...)
}

func (d *Discovery) groupVersions() []string { return slices.Concat(d.cfg.Ordinary, d.cfg.Privileged) }

// listResources lists the resources in a group-version. It returns an error while a defined resource is missing.
func (d *Discovery) listResources(ctx context.Context, name string) ([]plan.APIResource, error) {
	listed, err := d.api.DiscoverResources(ctx, name)
	if err != nil && !errors.Is(err, kube.ErrNotServed) {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(name)
	if err != nil {
		return nil, fmt.Errorf("reading group-version %s: %w", name, err)
	}
	resources := []plan.APIResource{}
	for _, r := range listed {
		resource := plan.APIResource{
			Group: cmp.Or(r.Group, gv.Group), Plural: r.Name, Singular: cmp.Or(r.SingularName, strings.ToLower(r.Kind)), Namespaced: r.Namespaced,
		}
		if !strings.Contains(r.Name, "/") && !d.definitions.IsDefinitionDeleted(resource) {
			resources = append(resources, resource)
		}
	}
	for _, defined := range d.definitions.ServedResources(gv) {
		if !slices.Contains(resources, defined) {
			return nil, fmt.Errorf("discovering %s in %s: %w", defined, name, errBehind)
		}
	}
	return resources, nil
}

// modulesOfResources returns the modules of the resources found. A resource of several group-versions gets the module of the
// first, and privileged group-versions come before ordinary ones.
func (c Config) modulesOfResources(found map[string][]plan.APIResource) []model.Module {
	var modules []model.Module
	add := func(names []string, privileged bool) {
		template := plan.ModuleTemplate{AccountType: c.AccountType, Privileged: privileged, Discovered: true}
		for _, name := range names {
			for _, r := range found[name] {
				modules = append(modules, newResourceModule(template, r))
			}
		}
	}
	add(c.Privileged, true)
	add(c.Ordinary, false)
	slices.SortStableFunc(modules, func(a, b model.Module) int { return a.Origin.Compare(b.Origin) })
	return slices.CompactFunc(modules, func(a, b model.Module) bool { return a.Origin == b.Origin })
}

func newResourceModule(template plan.ModuleTemplate, r plan.APIResource) model.Module {
	m := model.Module{Origin: model.ModuleOrigin{Kind: model.Discovered, Scope: r.Group, Name: r.Plural}, API: r.String(), Base: template.AccountType}
	dsl, err := template.RenderModule(r)
	if m.DSL = dsl; err != nil {
		m.Fault = fmt.Sprintf("there can be no module for %s: %v", r, err)
	}
	return m
}
