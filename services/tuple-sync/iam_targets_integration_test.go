//go:build integration

package tuplesync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

const mapType = "core.miloapis.com/ConfigMap"

func configMaps() kinds.Kind {
	return kinds.TargetKind(event.GroupResource{Resource: "configmaps"}, "v1", "ConfigMap")
}

// configMap makes one, of a project if that is given.
func (b *iamTestEnv) configMap(name string, owner *metav1.ObjectMeta) metav1.ObjectMeta {
	b.T.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners(owner)}}
	made, err := b.maps().Create(b.T.Context(), m, metav1.CreateOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	return made.ObjectMeta
}

// owners say that an object is of a project, or of none.
func owners(project *metav1.ObjectMeta) []metav1.OwnerReference {
	if project == nil {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "resourcemanager.miloapis.com/v1alpha1", Kind: "Project", Name: project.Name, UID: project.UID}}
}

func (b *iamTestEnv) maps() typedcorev1.ConfigMapInterface {
	return b.Typed.CoreV1().ConfigMaps(ns)
}

// grants waits until the store holds a binding's grant on an object, or none.
func (b *iamTestEnv) grants(want bool, object string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		held := b.holds(b.id)
		if has := slices.ContainsFunc(held, func(t string) bool { return strings.HasPrefix(t, object+"#b@") }); has != want {
			return fmt.Errorf("%s has a grant: %v, want %v; the store holds %v", object, has, want, held)
		}
		return nil
	})
}

func iamObject(m metav1.ObjectMeta) string { return iam.OpenFGAObject(mapType, m.Namespace, m.Name) }

// A binding on one object gives something as long as that very object is there, and people are told why it does not.
func TestBindingOnRegisteredKindLastsWithObject(t *testing.T) {
	b := newIAMTestEnv(t)
	b.register("configmap", mapType, "configmaps")
	b.remodel()
	reflector := b.StartReflector()
	b.serve()
	alice := b.user("alice")
	b.role("viewer", nil, "core.miloapis.com/configmaps.get")
	one := b.configMap("one", nil)
	b.bind("one", "viewer", on(mapType, one), user(alice))
	b.ready(kinds.PolicyBindings(), "one", iamv1alpha1.ResourceSelectorValidationFailed)
	b.observed("configmap", iamv1alpha1.NotFollowed, "not followed yet")
	reflector.PublishTargetKind(configMaps(), "you may not")
	b.observed("configmap", iamv1alpha1.NotFollowed, "you may not")
	b.grants(false, iamObject(one))

	reflector.PublishTargetKind(configMaps(), "")
	b.ready(kinds.PolicyBindings(), "one", bound)
	b.observed("configmap", iamv1alpha1.Followed)
	b.grants(true, iamObject(one))
	b.register("rival", mapType, "things") // What it names nobody follows, though somebody else's ConfigMaps are.
	b.observed("rival", iamv1alpha1.NotFollowed, "not followed yet")

	if err := b.maps().Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.grants(false, iamObject(one))
	b.ready(kinds.PolicyBindings(), "one", iamv1alpha1.ResourceSelectorValidationFailed)
	another := b.configMap("one", nil) // It is another, of the same name.
	b.AwaitNoCalls()
	b.grants(false, iamObject(one))
	b.bind("another", "viewer", on(mapType, another), user(alice))
	b.ready(kinds.PolicyBindings(), "another", bound)
	b.grants(true, iamObject(one))

	reflector.PublishTargetKind(configMaps(), "the API server is silent")
	b.grants(false, iamObject(one))
	b.ready(kinds.PolicyBindings(), "another", iamv1alpha1.ResourceSelectorValidationFailed)
}

// Whose an object is, its owner reference says.
func TestOwnerReferenceLinksObjectToProject(t *testing.T) {
	b := newIAMTestEnv(t)
	b.register("configmap", mapType, "configmaps", projectType)
	b.remodel()
	reflector := b.StartReflector()
	b.serve()
	web := b.project("web", b.org("acme").Name)
	owned := b.configMap("owned", &web)
	reflector.PublishTargetKind(configMaps(), "")
	parent := iamObject(owned) + "#p@" + projectType + ":web"
	testenv.Eventually(t, soon, func() error {
		if held := b.holds(b.id); !slices.Contains(held, parent) {
			return fmt.Errorf("the store holds %v, want %s", held, parent)
		}
		return nil
	})
	if err := b.maps().Delete(t.Context(), "owned", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		if held := b.holds(b.id); slices.Contains(held, parent) {
			return fmt.Errorf("the store holds %v", held)
		}
		return nil
	})
}

// Clients that the kinds' authors publish read conditions by position.
func TestConditionsAreInPublishedOrder(t *testing.T) {
	b := newIAMTestEnv(t)
	b.StartReflector()
	b.serve()
	alice, web := b.user("alice"), b.project("web", b.org("acme").Name)
	staff := b.apply(kinds.IAMGroups(), "staff", nil)
	inOrder := func(when string) {
		t.Helper()
		for name, kind := range map[string]kinds.Kind{"on-web": kinds.PolicyBindings(), "alice-staff": kinds.GroupMemberships()} {
			want := map[string]string{
				"on-web": "TargetValid SubjectValid RoleValid Ready", "alice-staff": "UserRefValid GroupRefValid Ready",
			}[name]
			var o iamv1alpha1.PolicyBinding // Both have their conditions in the same place.
			if err := b.Get(kind.InNamespace(ns), name, &o); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range o.Status.Conditions {
				got = append(got, c.Type)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: conditions of %s are %v, want %s", when, name, got, want)
			}
		}
	}
	b.bind("on-web", "viewer", on(projectType, web), user(alice))
	b.join("alice-staff", "alice", staff)
	b.ready(kinds.PolicyBindings(), "on-web", iamv1alpha1.RoleNotFoundForBinding)
	b.ready(kinds.GroupMemberships(), "alice-staff", belonging)
	inOrder("without a role")
	b.role("viewer", nil, getProject)
	b.ready(kinds.PolicyBindings(), "on-web", bound)
	inOrder("at the end")
}
