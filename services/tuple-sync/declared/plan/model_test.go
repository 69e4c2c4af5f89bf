package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

func TestValidateTupleAcceptsWritableTuples(t *testing.T) {
	model := testModel(t)
	long := strings.Repeat("x", 600)
	for name, c := range map[string]struct {
		tuple.Tuple
		wrong string
	}{
		"a user":                             {parseTuple("doc:1", "viewer", "user:1"), ""},
		"everybody":                          {parseTuple("doc:1", "viewer", "user:*"), ""},
		"a userset":                          {parseTuple("doc:1", "viewer", "team:1#member"), ""},
		"a parent":                           {parseTuple("doc:1", "parent", "folder:1"), ""},
		"a condition without context":        {withRelation(parseTuple("doc:1", "editor", "user:1"), "from_office", ""), ""},
		"a condition with some context":      {withRelation(parseTuple("doc:1", "editor", "user:1"), "from_office", `{"floor":3}`), ""},
		"an object id with signs":            {parseTuple("doc:a/b|c@d", "viewer", "user:1"), ""},
		"unknown object type":                {parseTuple("ship:1", "viewer", "user:1"), "type 'ship' not found"},
		"unknown relation":                   {parseTuple("doc:1", "captain", "user:1"), "relation 'doc#captain' not found"},
		"unknown user type":                  {parseTuple("doc:1", "viewer", "robot:1"), "type 'robot' not found"},
		"unknown relation of a userset":      {parseTuple("doc:1", "viewer", "team:1#boss"), "relation 'team#boss' not found"},
		"a type that is not allowed there":   {parseTuple("doc:1", "owner", "team:1"), "type 'team' is not an allowed type restriction"},
		"everybody where only users may be":  {parseTuple("doc:1", "owner", "user:*"), "typed wildcard 'user:*' is not an allowed"},
		"a userset where only users may be":  {parseTuple("doc:1", "owner", "team:1#member"), "'team#member' is not an allowed"},
		"a computed relation":                {parseTuple("doc:1", "reader", "user:1"), "not an allowed type restriction"},
		"everybody as a parent":              {parseTuple("doc:1", "parent", "folder:*"), "unexpected wildcard relationship"},
		"a missing condition":                {parseTuple("doc:1", "editor", "user:1"), "condition is missing"},
		"an unknown condition":               {withRelation(parseTuple("doc:1", "viewer", "user:1"), "weekdays", ""), "undefined condition"},
		"a condition that is not allowed":    {withRelation(parseTuple("doc:1", "owner", "user:1"), "from_office", ""), "invalid condition for type restriction"},
		"an unknown parameter":               {withRelation(parseTuple("doc:1", "editor", "user:1"), "from_office", `{"day":3}`), "found invalid context parameter: day"},
		"a parameter of the wrong type":      {withRelation(parseTuple("doc:1", "editor", "user:1"), "from_office", `{"floor":"third"}`), "failed to convert context parameter 'floor'"},
		"a context that is no object":        {withRelation(parseTuple("doc:1", "editor", "user:1"), "from_office", `[1]`), "must be a JSON object"},
		"a context that is too large":        {withRelation(parseTuple("doc:1", "editor", "user:1"), "from_office", `{"ip":"`+strings.Repeat("1", 33000)+`"}`), "takes 33"},
		"an object without id":               {parseTuple("doc", "viewer", "user:1"), "the object must be type:id"},
		"an object with two colons":          {parseTuple("doc:1:2", "viewer", "user:1"), "the object must be type:id"},
		"an empty object":                    {parseTuple("", "viewer", "user:1"), "the object must be type:id"},
		"any object":                         {parseTuple("doc:*", "viewer", "user:1"), "the object must be a single one"},
		"an empty relation":                  {parseTuple("doc:1", "", "user:1"), "the relation must be a name"},
		"a relation with a colon":            {parseTuple("doc:1", "a:b", "user:1"), "the relation must be a name"},
		"a relation that is too long":        {parseTuple("doc:1", long, "user:1"), "relation: value does not match"},
		"a user without type":                {parseTuple("doc:1", "viewer", "alice"), "the user must be type:id"},
		"an empty user":                      {parseTuple("doc:1", "viewer", ""), "the user must be type:id"},
		"a user with two colons":             {parseTuple("doc:1", "viewer", "user:system:node"), "the user must be type:id"},
		"a user that is too long":            {parseTuple("doc:1", "viewer", "user:"+long), "user: value length must be at most 512 bytes"},
		"a user with a space":                {parseTuple("doc:1", "viewer", "user:a b"), "the user must be type:id"},
		"anybody of no type":                 {parseTuple("doc:1", "viewer", "*"), "the user must be type:id"},
		"what is true anyway":                {parseTuple("team:1", "member", "team:1#member"), "member of itself"},
		"an object that is too long":         {parseTuple("doc:"+long, "viewer", "user:1"), "object: value does not match"},
		"a condition's name with line break": {withRelation(parseTuple("doc:1", "viewer", "user:1"), "a\nb", ""), "name: value does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Tuple.Validate()
			if err == nil {
				err = model.ValidateTuple(c.Tuple)
			}
			switch {
			case c.wrong == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("got %v, want %q", err, c.wrong)
			case err != nil && strings.Contains(err.Error(), "object:"+c.Object):
				t.Errorf("the reason repeats the tuple: %v", err)
			}
		})
	}
}

func TestWithRefusedTuplesRemembersRefusal(t *testing.T) {
	refused := errors.New("too early")
	model := testModel(t).WithRefusedTuples(map[tuple.Tuple]error{t1: refused})
	if err := model.WithRefusedTuples(map[tuple.Tuple]error{t2: refused}).ValidateTuple(t1); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if err := model.ValidateTuple(t2); err != nil {
		t.Errorf("another tuple: %v", err)
	}
}

func BenchmarkValidate(b *testing.B) {
	model := testModel(b)
	for b.Loop() {
		if err := model.ValidateTuple(t1); err != nil {
			b.Fatal(err)
		}
	}
}
