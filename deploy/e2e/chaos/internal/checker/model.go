package checker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/encoding/prototext"
)

const schemaVersion = "1.2"

// Module is a part of a model. Last is its last live text by the status of its object.
type Module struct{ Name, Text, Last string }

// mergeModules returns the model of a core module and all valid modules; for an invalid one, its last live text counts. The
// modules of the workload depend only on the core module, so each is validated alone with it.
func mergeModules(core Module, others []Module) (*openfgav1.AuthorizationModel, map[string]error, error) {
	if _, err := compileModules(core); err != nil {
		return nil, nil, err
	}
	valid, broken := []Module{core}, map[string]error{}
	for _, m := range others {
		if _, err := compileModules(core, m); err != nil {
			broken[m.Name] = err
			if m.Text = m.Last; m.Last == "" {
				continue
			}
			if _, err := compileModules(core, m); err != nil {
				continue
			}
		}
		valid = append(valid, m)
	}
	model, err := compileModules(valid...)
	return model, broken, err
}

func compileModules(modules ...Module) (*openfgav1.AuthorizationModel, error) {
	files := make([]transformer.ModuleFile, len(modules))
	for i, m := range modules {
		files[i] = transformer.ModuleFile{Name: m.Name, Contents: m.Text}
	}
	model, err := transformer.TransformModuleFilesToModel(files, schemaVersion)
	if err != nil {
		return nil, err
	}
	if len(model.GetTypeDefinitions()) == 0 {
		return nil, errors.New("it defines no type")
	}
	if _, err := typesystem.NewAndValidate(context.Background(), model); err != nil {
		return nil, err
	}
	return model, nil
}

// rewritesOf returns the rewrite of each type and relation, without module and source information.
func rewritesOf(model *openfgav1.AuthorizationModel) map[string]string {
	all := map[string]string{}
	for _, t := range model.GetTypeDefinitions() {
		all[t.GetType()] = ""
		for name, rewrite := range t.GetRelations() {
			var direct []string
			for _, d := range t.GetMetadata().GetRelations()[name].GetDirectlyRelatedUserTypes() {
				direct = append(direct, userTypeText(d))
			}
			slices.Sort(direct)
			// The whitespace of prototext is random on purpose.
			text := strings.Join(strings.Fields(prototext.Format(rewrite)), " ")
			all[t.GetType()+"#"+name] = text + " from " + strings.Join(direct, ", ")
		}
	}
	return all
}

func userTypeText(d *openfgav1.RelationReference) string {
	switch {
	case d.GetRelation() != "":
		return d.GetType() + "#" + d.GetRelation()
	case d.GetWildcard() != nil:
		return d.GetType() + ":*"
	}
	return d.GetType()
}

// acceptsTuple reports whether a model accepts a tuple whose user is a plain object.
func acceptsTuple(model *openfgav1.AuthorizationModel, t Tuple) bool {
	of, _, _ := strings.Cut(t.Object, ":")
	by, _, _ := strings.Cut(t.User, ":")
	for _, d := range model.GetTypeDefinitions() {
		if d.GetType() != of {
			continue
		}
		for _, u := range d.GetMetadata().GetRelations()[t.Relation].GetDirectlyRelatedUserTypes() {
			if u.GetType() == by && u.GetRelation() == "" && u.GetWildcard() == nil {
				return true
			}
		}
	}
	return false
}

// compareMaps returns an error that counts the differences between is and want, with a few examples of each sort.
func compareMaps[V comparable](what string, is, want map[string]V) error {
	var lacks, surplus, other []string
	for k, v := range want {
		if has, ok := is[k]; !ok {
			lacks = append(lacks, k)
		} else if has != v {
			other = append(other, fmt.Sprintf("%s is %v, want %v", k, has, v))
		}
	}
	for k := range is {
		if _, ok := want[k]; !ok {
			surplus = append(surplus, k)
		}
	}
	if len(lacks)+len(surplus)+len(other) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d missing%s, %d that nobody declares%s, %d otherwise%s",
		what, len(lacks), firstFew(lacks), len(surplus), firstFew(surplus), len(other), firstFew(other))
}

// firstFew returns the first five of a list.
func firstFew(all []string) string {
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	text := strings.Join(all[:min(len(all), 5)], "; ")
	if len(all) > 5 {
		text += "; …"
	}
	return " (" + text + ")"
}
