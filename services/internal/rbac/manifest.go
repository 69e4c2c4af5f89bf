package rbac

import (
	"encoding/json"
	"io"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeManifests writes objects as YAML documents.
func writeManifests(out io.Writer, objects []any) error {
	documents := yaml.NewEncoder(out)
	documents.SetIndent(2)
	for _, object := range objects {
		node, err := yamlDocument(object)
		if err != nil {
			return err
		}
		if err := documents.Encode(node); err != nil {
			return err
		}
	}
	return documents.Close()
}

// roleManifest holds the fields of a Role or ClusterRole that the manifests use.
type roleManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Rules             []Right `json:"rules"`
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// yamlDocument returns an object as YAML. The reason for each right is in a comment above the right.
func yamlDocument(object any) (*yaml.Node, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil { // JSON is also YAML.
		return nil, err
	}
	formatYAMLNode(&node)
	return &node, nil
}

// formatYAMLNode uses block style except for lists of words, and turns the reason for a right into a comment.
func formatYAMLNode(node *yaml.Node) {
	node.Style = 0
	if node.Kind == yaml.SequenceNode && node.Content[0].Kind == yaml.ScalarNode {
		node.Style = yaml.FlowStyle
	}
	if node.Kind == yaml.MappingNode && node.Content[0].Value == "why" {
		node.HeadComment = "# " + node.Content[1].Value
		node.Content = node.Content[2:]
	}
	for _, child := range node.Content {
		formatYAMLNode(child)
	}
}
