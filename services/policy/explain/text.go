package explain

import (
	"fmt"
	"strings"
)

// RenderText returns the tree for people.
func (t *ActionTree) RenderText() string {
	p := treePrinter{}
	p.b.WriteString(t.Action + " on " + t.Type + t.treeRemark() + "\n")
	p.writeWays(t, "")
	return p.b.String()
}

type treePrinter struct{ b strings.Builder }

// writeBranch writes one line of a tree, and returns the prefix of the lines below it.
func (p *treePrinter) writeBranch(indent string, last bool, text string) string {
	fork, below := "├─ ", "│  "
	if last {
		fork, below = "└─ ", "   "
	}
	p.b.WriteString(indent + fork + text + "\n")
	return indent + below
}

func (p *treePrinter) writeWays(t *ActionTree, indent string) {
	if t.Role != nil {
		p.writeBranch(indent, len(t.Steps) == 0, "role binding in "+t.Role.Relation+", of "+t.Role.Holder)
	}
	for i, s := range t.Steps {
		below := p.writeBranch(indent, i == len(t.Steps)-1, s.Relation+" -> "+s.Action+inBrackets(s.Declared.String()))
		for j, target := range s.Targets {
			p.writeWays(target, p.writeBranch(below, j == len(s.Targets)-1 && s.More == 0, "on "+target.Type+target.treeRemark()))
		}
		if s.More > 0 {
			p.writeBranch(below, true, fmt.Sprintf("on %d more types, too many to show", s.More))
		}
	}
}

// treeRemark returns notes about an action on a type, apart from its paths.
func (t *ActionTree) treeRemark() string {
	remark := ""
	switch t.Ending {
	case Recursion:
		return ": recursion, the same on the next " + t.Type
	case Above:
		return ": as above"
	case Cut:
		remark = ": there is more, too much to show"
	}
	if t.NeverGranted {
		remark += ": nobody can ever have it"
	}
	if t.On != "" {
		return remark + inBrackets("bound to "+t.On+", "+t.Bound.String())
	}
	return remark + inBrackets(t.Bound.String())
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
