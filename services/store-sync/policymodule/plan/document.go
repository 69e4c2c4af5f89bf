package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/precedence"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// Document holds the present and the live text of one PolicyDocument.
type Document struct {
	// Name is namespace/name.
	Name string
	// UID tells the document from an earlier one of its name.
	UID string
	// Live is nil if no part of the document is valid and live.
	Present, Live *iaplv1alpha1.Policy
	// Created is the creation time of the PolicyDocument.
	Created time.Time

	// changed means that the live text differs from the present one, or does not exist.
	changed bool
}

// setLiveText sets the live text of the document.
func (d *Document) setLiveText(text *iaplv1alpha1.Policy) {
	d.Live = text
	d.changed = text == nil || !equality.Semantic.DeepEqual(d.Present, text)
}

// compareClaims orders documents by their claims.
func (d Document) compareClaims(o Document) int {
	return precedence.Compare(d.precedenceClaim(), o.precedenceClaim())
}

func (d Document) precedenceClaim() precedence.Claim {
	c := precedence.Claim{Live: precedence.Present, Created: d.Created, Name: d.Name}
	switch {
	case !d.changed:
	case d.Live != nil:
		c.Live = precedence.Earlier
	default:
		c.Live = precedence.None
	}
	return c
}

// isOlderThan reports whether the document has the better claim to a name that neither has live.
func (d Document) isOlderThan(o Document) bool {
	return precedence.Compare(precedence.Claim{Created: d.Created, Name: d.Name}, precedence.Claim{Created: o.Created, Name: o.Name}) < 0
}

// liveTextMentions reports whether the live text has a name.
func (d Document) liveTextMentions(name string) bool {
	if d.Live == nil {
		return false
	}
	m := collectMentionedNames(d.Live)
	return m.types[name] || m.actions[name] || m.bindings[name]
}

// maxPolicy bounds the text of a document that is kept in an annotation, in bytes. Kubernetes allows 256 KiB for all
// annotations of an object together.
const maxPolicy = 200 << 10

// oversizedDocumentFindings returns a finding on a document that is too large to be kept.
func oversizedDocumentFindings(d Document) policy.Diagnostics {
	if n := len(encodePolicy(d.Present)); n > maxPolicy {
		return policy.Diagnostics{{
			Code: policy.CodeLimit, Severity: policy.Error, Message: fmt.Sprintf("the document has %d bytes, of at most %d", n, maxPolicy),
			Place: policy.Place{Path: "spec"}, Hint: "split it into several documents",
		}}
	}
	return nil
}

// ToSyntaxDocument converts the spec of the PolicyDocument with this name to a document for the policy library. Findings use file
// as its name.
func ToSyntaxDocument(file, name string, p *iaplv1alpha1.Policy) *syntax.Document {
	d := &syntax.Document{Source: &policy.DocumentSource{File: file, Owner: syntax.ObjectOwner(name)}}
	for _, t := range p.ResourceTypes {
		read := syntax.ResourceType{Name: toSyntaxName(t.Name), IDPrefix: toSyntaxName(t.IDPrefix)}
		for _, r := range t.Relationships {
			read.Relationships = append(read.Relationships, syntax.Relationship{Relation: toSyntaxName(r.Relation), Targets: toSyntaxNames(r.TargetTypes)})
		}
		d.ResourceTypes = append(d.ResourceTypes, read)
	}
	for _, u := range p.Unions {
		d.Unions = append(d.Unions, syntax.Union{Name: toSyntaxName(u.Name), Members: toSyntaxNames(u.ResourceTypes)})
	}
	for _, a := range p.Actions {
		d.Actions = append(d.Actions, syntax.Action{Name: toSyntaxName(a.Name)})
	}
	for _, b := range p.ActionBindings {
		read := syntax.Binding{Action: toSyntaxName(b.ActionName), Type: toSyntaxName(b.TypeName)}
		for _, c := range b.Conditions {
			read.Conditions = append(read.Conditions, toSyntaxCondition(c))
		}
		d.Bindings = append(d.Bindings, read)
	}
	return syntax.SetObjectPositions(d, "spec")
}

func toSyntaxCondition(c iaplv1alpha1.Condition) syntax.Condition {
	read := syntax.Condition{RoleBinding: c.RoleBinding != nil}
	if a := c.RelationshipAction; a != nil {
		read.RelationshipAction = &syntax.RelationshipAction{Relation: toSyntaxName(a.Relation), Action: toSyntaxName(a.ActionName)}
	}
	return read
}

func toSyntaxName(text string) syntax.Name { return syntax.Name{Text: text} }

func toSyntaxNames(all []iaplv1alpha1.Named) []syntax.Name {
	read := make([]syntax.Name, len(all))
	for i, n := range all {
		read[i] = toSyntaxName(n.Name)
	}
	return read
}
