package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
)

// patternValue is a text of an object that OpenSearch reads as a pattern.
type patternValue struct {
	field, text string
	// action marks the text as an action, an action group, or a pattern of actions.
	action bool
}

// patternValues returns the patterns of an object.
func patternValues(o opensearchv1.DeclaredObject) (all []patternValue) {
	add := func(action bool, field string, texts []string) {
		for _, text := range texts {
			all = append(all, patternValue{field, text, action})
		}
	}
	switch o := o.(type) {
	case *opensearchv1.OpensearchRole:
		add(true, "clusterPermissions", o.Spec.ClusterPermissions)
		for i, p := range o.Spec.IndexPermissions {
			add(false, fmt.Sprintf("indexPermissions[%d].indexPatterns", i), p.IndexPatterns)
			add(true, fmt.Sprintf("indexPermissions[%d].allowedActions", i), p.AllowedActions)
			for _, mask := range p.MaskedFields { // The field, then an algorithm or expression, which OpenSearch checks, too.
				parts := strings.SplitN(mask, "::", 3)
				add(false, fmt.Sprintf("indexPermissions[%d].maskedFields", i), parts[:min(2, len(parts))])
			}
		}
		for i, p := range o.Spec.TenantPermissions {
			add(false, fmt.Sprintf("tenantPermissions[%d].tenantPatterns", i), p.TenantPatterns)
			add(true, fmt.Sprintf("tenantPermissions[%d].allowedActions", i), p.AllowedActions)
		}
	case *opensearchv1.OpensearchActionGroup:
		add(true, "allowedActions", o.Spec.AllowedActions)
	case *opensearchv1.OpensearchUserRoleBinding:
		add(false, "users", o.Spec.Users)
		add(false, "backendRoles", o.Spec.BackendRoles)
		add(false, "hosts", o.Spec.Hosts)
		add(false, "andBackendRoles", o.Spec.AndBackendRoles)
	}
	return all
}

// CheckPatternValues returns why OpenSearch would store the values of an object but could not use them, or nil. One pattern
// that does not compile can keep OpenSearch from loading every later change. If groups is not nil, it lists the
// existing action groups, and CheckPatternValues also checks the names of actions.
func CheckPatternValues(o opensearchv1.DeclaredObject, groups map[string]bool) *Verdict {
	if contentCost(o) > maxContent {
		return new(failedVerdict(TooLarge, fmt.Sprintf(
			"it asks for more than %d KiB, counting %d bytes for each value and %d for each object besides its text: split it into several objects",
			maxContent>>10, ValueCost, ObjectCost)))
	}
	// A further backend role would be written, but not compared with the mappings of protected roles. Other CRDs allow it.
	if user, ok := o.(*opensearchv1.OpensearchUser); ok && len(user.Spec.BackendRoles) > maxBackendRoles {
		return new(failedVerdict(TooLarge, fmt.Sprintf("spec.backendRoles: a user can have at most %d", maxBackendRoles)))
	}
	all := patternValues(o)
	for _, v := range all {
		if err := checkPattern(v.text); err != nil {
			return new(failedVerdict(Invalid, fmt.Sprintf(
				"spec.%s: OpenSearch cannot use the regular expression %.256q: %v; correct it", v.field, v.text, err)))
		}
	}
	if role, ok := o.(*opensearchv1.OpensearchRole); ok {
		for i, p := range role.Spec.IndexPermissions {
			if !isQueryOrEmpty(p.DLS) {
				return new(failedVerdict(Invalid, fmt.Sprintf("spec.indexPermissions[%d].dls is not a JSON object with a query; correct it", i)))
			}
		}
	}
	for _, v := range all {
		if v.action && !isActionPattern(v.text) {
			return new(failedVerdict(Invalid, fmt.Sprintf("spec.%s: no action has the namespace of %.256q; correct it", v.field, v.text)))
		}
		if groups != nil && v.action && !strings.ContainsAny(v.text, ":*?/") && !groups[v.text] {
			return new(pendingVerdict(ActionGroupMissing, fmt.Sprintf(
				"spec.%s: %.256q is neither an action nor an action group in OpenSearch; correct it or create the action group", v.field, v.text)))
		}
	}
	return nil
}

// contentCost returns the cost of the content that an object declares. A binding declares its entries in each role.
func contentCost(o opensearchv1.DeclaredObject) int {
	times, content := 1, any(DeclaredBody(o))
	if b, ok := o.(*opensearchv1.OpensearchUserRoleBinding); ok {
		times, content = len(b.Spec.Roles), [][]string{b.Spec.Users, b.Spec.BackendRoles, b.Spec.Hosts, b.Spec.AndBackendRoles}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return maxContent + 1 // Decoded JSON can always be encoded.
	}
	return times * new(MemoryMeter).CostOf(text)
}

var (
	// variable matches a placeholder that OpenSearch replaces by an attribute of the user.
	variable = regexp.MustCompile(`\$\{(?:user[._](?:name|roles|securityRoles)|attr\.[^{}"]+)\}`)
	// comment matches a JSON string or a comment. OpenSearch skips comments.
	comment = regexp.MustCompile(`(?s)("(?:[^"\\]|\\.)*")|/\*.*?\*/|//[^\n]*`)
	// token matches one part of a regular expression. java.util.regex and regexp/syntax read these parts alike, except
	// for lookahead, atomic groups and possessive quantifiers.
	token = regexp.MustCompile(`(?s)\\(?:[dDwWsSntrf]|[^\pL\pN])` +
		`|\[\^?(?:\\[dDwWsSntrf]|\\[^\pL\pN]|[^\\\[\]&^])(?:\\[dDwWsSntrf]|\\[^\pL\pN]|[^\\\[\]&])*\]` +
		`|\(\?(?:[:=!>]|i\))` +
		`|(?:[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})[+?]?` +
		`|[^\\\[{*+?]`)
)

// errUnsupported means that checkPattern cannot check a part of the expression and therefore refuses it.
var errUnsupported = errors.New("it is not closed, or uses more than characters, classes, groups, lookahead, quantifiers and (?i)")

// errSlow means that one name could keep OpenSearch busy for minutes. It compares the names of all users at each login.
var errSlow = errors.New("comparing it can take too long: repeat no group that has a repeat or an alternative, and use at most three repeats")

const (
	// maxChoices bounds the choices of an expression, as a power of two. A repeat counts as many choices.
	maxChoices    = 20
	repeatChoices = 6
)

// regexpChoices counts the choices that a regular expression leaves to java.util.regex, which tries all of them.
type regexpChoices struct {
	count int
	// groups holds, for the expression and each open group, whether it has a choice.
	groups []bool
}

// countPart adds the choices of the next part of an expression. The error is errSlow if there are too many.
func (c *regexpChoices) countPart(part, rest string) error {
	last := len(c.groups) - 1
	switch {
	case strings.HasPrefix(part, "(") && part != "(?i)":
		c.groups = append(c.groups, false)
	case part == ")" && last > 0:
		inner := c.groups[last]
		c.groups = c.groups[:last]
		c.groups[last-1] = c.groups[last-1] || inner
		if inner && isQuantifier(rest) && rest[0] != '?' {
			return errSlow
		}
	case part[0] == '?' || part == "|":
		c.count++
		c.groups[last] = true
	case part[0] == '*' || part[0] == '+' || isQuantifier(part) && strings.Contains(part, ","):
		c.count += repeatChoices
		c.groups[last] = true
	}
	if c.count > maxChoices {
		return errSlow
	}
	return nil
}

// checkPattern returns why java.util.regex would not compile a pattern. Only text between slashes is a regular
// expression.
func checkPattern(text string) error {
	if !strings.HasPrefix(text, "/") || !strings.HasSuffix(text, "/") {
		return nil
	}
	if len(text) < 2 {
		return errors.New("a slash stands alone")
	}
	rest, parsed, found := variable.ReplaceAllString(text[1:len(text)-1], "x"), strings.Builder{}, regexpChoices{groups: []bool{false}}
	for rest != "" {
		at := token.FindStringIndex(rest)
		if at == nil || at[0] != 0 {
			return errUnsupported
		}
		part := rest[:at[1]]
		rest = rest[at[1]:]
		if err := found.countPart(part, rest); err != nil {
			return err
		}
		switch {
		case part == "(" && strings.HasPrefix(rest, "?"), (part == "(?i)" || isQuantifier(part)) && isQuantifier(rest):
			return errUnsupported
		case part == "(?=", part == "(?!", part == "(?>":
			part = "(?:"
		case len(part) > 1 && isQuantifier(part):
			part = strings.TrimSuffix(part, "+")
		}
		parsed.WriteString(part)
	}
	_, err := syntax.Parse(parsed.String(), syntax.Perl)
	return err
}

// isQuantifier reports whether a text begins with a quantifier.
func isQuantifier(text string) bool { return text != "" && strings.ContainsAny(text[:1], "*+?{") }

// actionNamespaces returns the first parts of the names of actions in OpenSearch, its plugins and Dashboards.
func actionNamespaces() []string {
	return []string{"cluster", "extension", "indices", "internal", "kibana", "osd", "restapi", "system"}
}

// isActionPattern reports whether a text may match the name of an action, or name a group. No API lists the actions of a
// server and its plugins, so only the namespace of a name is checked.
func isActionPattern(text string) bool {
	namespace, _, found := strings.Cut(text, ":")
	return !found || strings.ContainsAny(namespace, "*?/") || slices.Contains(actionNamespaces(), namespace)
}

// RoleQuery is a query for document-level security, in the form in which a server parses it.
type RoleQuery struct{ field, Query string }

// RoleQueries returns the queries of a role.
func RoleQueries(o opensearchv1.DeclaredObject) (all []RoleQuery) {
	if role, ok := o.(*opensearchv1.OpensearchRole); ok {
		for i, p := range role.Spec.IndexPermissions {
			if p.DLS != "" {
				all = append(all, RoleQuery{fmt.Sprintf("spec.indexPermissions[%d].dls", i), replaceVariables(p.DLS)})
			}
		}
	}
	return all
}

// UnparsableVerdict returns the verdict for a role with a query that the server cannot parse.
func (q RoleQuery) UnparsableVerdict(why string) *Verdict {
	return new(failedVerdict(Invalid, fmt.Sprintf("%s: OpenSearch cannot parse the query: %s; correct it", q.field, why)))
}

// replaceVariables returns a query without comments and placeholders.
func replaceVariables(dls string) string {
	return variable.ReplaceAllString(comment.ReplaceAllString(dls, "$1"), "0")
}

// isQueryOrEmpty reports whether OpenSearch can read a text as a query for document-level security. An empty text means no
// query.
func isQueryOrEmpty(dls string) bool {
	var query map[string]map[string]any
	return dls == "" || json.Unmarshal([]byte(replaceVariables(dls)), &query) == nil && len(query) == 1
}
