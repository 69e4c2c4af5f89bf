package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// objectOnOldVersion is an object whose earlier version is live because its current one is invalid.
type objectOnOldVersion struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Since     time.Time `json:"since"`
	// Message gives the reason, and how to revoke the access that the current version removed.
	Message string `json:"message"`
}

// printObjectsOnOldVersion prints one line for each.
func printObjectsOnOldVersion(cmd *cobra.Command, texts []objectOnOldVersion) {
	for _, e := range texts {
		name := strings.ToLower(e.Kind) + "/" + e.Name
		if e.Namespace != "" {
			name += " in namespace " + e.Namespace
		}
		cmd.Printf("%s: an earlier valid version is in force since %s: %s\n", name, e.Since.Format(time.RFC3339), e.Message)
	}
}

// marshalWithObjectsOnOldVersion returns m as JSON with the field earlierTexts. The field is absent if known is false.
func marshalWithObjectsOnOldVersion(m proto.Message, texts []objectOnOldVersion, known bool) ([]byte, error) {
	document, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
	if err != nil || !known {
		return document, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	if fields["earlierTexts"], err = json.Marshal(texts); err != nil {
		return nil, fmt.Errorf("encode last valid texts: %w", err)
	}
	return json.Marshal(fields)
}

// listObjectsOnOldVersion lists these objects with the rights of the caller, as kubectl does. known is false without a kubeconfig
// or without the rights. The error means that a part could not be read, which is printed.
func (c kubeconfigCluster) listObjectsOnOldVersion(cmd *cobra.Command) (texts []objectOnOldVersion, known bool, incomplete error) {
	if loadKubeconfig(c.getenv).CurrentContext == "" {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), defaultTimeout)
	defer cancel()
	texts = []objectOnOldVersion{}
	objects, err := c.newDynamicClient()
	if err == nil {
		err = cmp.Or(appendObjectsOnOldVersion[corev1alpha1.Store](ctx, objects, kinds.Stores(), &texts),
			appendObjectsOnOldVersion[corev1alpha1.AuthorizationModel](ctx, objects, kinds.AuthorizationModels(), &texts),
			appendObjectsOnOldVersion[iaplv1alpha1.PolicyDocument](ctx, objects, kinds.PolicyDocuments(), &texts))
	}
	if err != nil {
		cmd.PrintErrf("Not checked which objects have an earlier valid version in force: %v\n", err)
		return texts, false, errTruncated
	}
	return texts, true, nil
}

// appendObjectsOnOldVersion appends the objects of one kind.
func appendObjectsOnOldVersion[T any, P interface {
	*T
	Kept() *metav1.Condition
}](ctx context.Context, objects dynamic.Interface, kind kinds.Kind, texts *[]objectOnOldVersion) error {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return objects.Resource(kind.GroupVersionResource()).List(ctx, options)
	}
	return pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		u, _ := o.(*unstructured.Unstructured)
		is := P(new(T))
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, is); err != nil {
			return err
		}
		if kept := is.Kept(); kept != nil {
			*texts = append(*texts, objectOnOldVersion{kind.Kind, u.GetNamespace(), u.GetName(), kept.LastTransitionTime.UTC(), kept.Message})
		}
		return nil
	})
}
