package explain

import (
	"fmt"
	"strings"
)

// Text returns the tree for people.
func (t *Tree) Text() string {
	p := printer{}
	p.b.WriteString(t.Action + " on " + t.Type + t.remark() + "\n")
	p.ways(t, "")
	return p.b.String()
}

type printer struct{ b strings.Builder }

// branch writes one line of a tree, and returns the prefix of the lines below it.
func (p *printer) branch(indent string, last bool, text string) string {
	fork, below := "├─ ", "│  "
	if last {
		fork, below = "└─ ", "   "
	}
	p.b.WriteString(indent + fork + text + "\n")
	return indent + below
}

func (p *printer) ways(t *Tree, indent string) {
	if t.Role != nil {
		p.branch(indent, len(t.Steps) == 0, "role binding in "+t.Role.Relation+", of "+t.Role.Holder)
	}
	for i, s := range t.Steps {
		below := p.branch(indent, i == len(t.Steps)-1, s.Relation+" -> "+s.Action+bracket(s.Declared.String()))
		for j, target := range s.Targets {
			p.ways(target, p.branch(below, j == len(s.Targets)-1 && s.More == 0, "on "+target.Type+target.remark()))
		}
		if s.More > 0 {
			p.branch(below, true, fmt.Sprintf("on %d more types, too many to show", s.More))
		}
	}
}

// remark returns notes about an action on a type, apart from its paths.
func (t *Tree) remark() string {
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
		return remark + bracket("bound to "+t.On+", "+t.Bound.String())
	}
	return remark + bracket(t.Bound.String())
}

func bracket(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
