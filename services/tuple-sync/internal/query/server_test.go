package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/informer"
)

// lines formats a list of tuples.
func lines(tuples []*tuplev1.Tuple) []string {
	var all []string
	for _, t := range tuples {
		line := t.GetKey().GetObject() + "#" + t.GetKey().GetRelation() + "@" + t.GetKey().GetUser()
		if c := t.GetCondition(); c != nil {
			line += fmt.Sprintf(" if %s%v", c.GetName(), c.GetContext().AsMap())
		}
		for _, o := range t.GetOwners() {
			line += fmt.Sprintf(" %s/%s=%s", o.GetKind(), o.GetName(), strings.TrimPrefix(o.GetState().String(), "STATE_"))
		}
		all = append(all, line)
	}
	return all
}

func TestListTuplesReportsOwnersAndState(t *testing.T) {
	sized := corev1alpha1.Tuple{Object: "doc:1", Relation: "viewer", User: "user:1", Condition: &corev1alpha1.TupleCondition{
		Name: "large", Context: &runtime.RawExtension{Raw: []byte(`{"size":5}`)},
	}}
	s := newQueryFixture(t)
	s.store("a", corev1alpha1.StoreStatus{StoreID: "S1", AuthorizationModelID: "model", ManagedTuples: []corev1alpha1.Tuple{one}}, one)
	s.module("m", "a", []corev1alpha1.Tuple{one, two}, one, two, corev1alpha1.Tuple{Object: "ship:1", Relation: "captain", User: "user:1"})
	s.module("n", "a", nil, sized, corev1alpha1.Tuple{Object: "doc:3", Relation: "viewer", User: "user:3"})
	all := []string{
		"doc:1#viewer@user:1 Store/a=LIVE AuthorizationModel/m=LIVE",
		"doc:1#viewer@user:1 if largemap[size:5] AuthorizationModel/n=INVALID",
		"doc:2#viewer@user:2 AuthorizationModel/m=LIVE",
		"doc:3#viewer@user:3 AuthorizationModel/n=PENDING",
		"ship:1#captain@user:1 AuthorizationModel/m=INVALID",
	}
	for name, c := range map[string]struct {
		request *tuplev1.ListTuplesRequest
		want    []string
	}{
		"everything":              {&tuplev1.ListTuplesRequest{}, all},
		"by object":               {&tuplev1.ListTuplesRequest{Object: "doc:1"}, all[:2]},
		"by relation":             {&tuplev1.ListTuplesRequest{Relation: "captain"}, all[4:]},
		"by user":                 {&tuplev1.ListTuplesRequest{User: "user:2"}, all[2:3]},
		"by owner":                {&tuplev1.ListTuplesRequest{Owner: "authorizationmodel/n"}, []string{all[1], all[3]}},
		"by Store":                {&tuplev1.ListTuplesRequest{Owner: "store/a"}, all[:1]},
		"by everything at once":   {&tuplev1.ListTuplesRequest{Object: "doc:1", Relation: "viewer", User: "user:1", Owner: "AuthorizationModel/m"}, all[:1]},
		"by what does not appear": {&tuplev1.ListTuplesRequest{Object: "doc:9"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Store = "a"
			got, err := s.server(nil).ListTuples(context.Background(), c.request)
			if err != nil {
				t.Fatal(err)
			}
			if lines := lines(got.GetTuples()); !slices.Equal(lines, c.want) {
				t.Errorf("got\n  %s", strings.Join(lines, "\n  "))
			}
		})
	}
}

func TestOwnerDeclaresTupleSinceCreation(t *testing.T) {
	got, err := newQueryFixture(t, one).server(nil).ListTuples(context.Background(), &tuplev1.ListTuplesRequest{Store: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if since := got.GetTuples()[0].GetOwners()[0].GetSince().AsTime(); since.Unix() != 1 {
		t.Errorf("wanted since %s", since)
	}
}

func TestListTuplesPagesAreDisjoint(t *testing.T) {
	var tuples []corev1alpha1.Tuple
	long := strings.Repeat("x", 3000)
	for i := range 250 {
		tuples = append(tuples, corev1alpha1.Tuple{Object: fmt.Sprintf("doc:%d", i), Relation: "viewer", User: "user:1"})
		if i%50 == 0 {
			tuples = append(tuples, corev1alpha1.Tuple{Object: "doc:" + long, Relation: "viewer", User: fmt.Sprint("user:", i)})
		}
	}
	s := newQueryFixture(t, tuples...)
	seen := map[string]bool{}
	request := &tuplev1.ListTuplesRequest{Store: "a", PageSize: 7}
	for {
		page, err := s.server(nil).ListTuples(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines(page.GetTuples()) {
			if seen[l] {
				t.Fatalf("%s appears twice", l)
			}
			seen[l] = true
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			break
		}
		if n := len(request.GetPageToken()); n > 2048 {
			t.Fatalf("a page token has %d characters", n)
		}
	}
	if len(seen) != 255 {
		t.Errorf("%d tuples of 255", len(seen))
	}
}

func TestListTuplesOfMissingStoreArePending(t *testing.T) {
	s := newQueryFixture(t)
	s.store("later", corev1alpha1.StoreStatus{}, one)
	s.module("m", "later", nil, two)
	got, err := s.server(nil).ListTuples(context.Background(), &tuplev1.ListTuplesRequest{Store: "later"})
	want := []string{"doc:1#viewer@user:1 Store/later=PENDING", "doc:2#viewer@user:2 AuthorizationModel/m=PENDING"}
	if lines := lines(got.GetTuples()); err != nil || !slices.Equal(lines, want) {
		t.Errorf("got %v, %v", lines, err)
	}
	_, err = s.server(nil).Check(context.Background(), &tuplev1.CheckRequest{Store: "later", Key: viewerKey})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a check is answered by %v", err)
	}
}

// viewerKey is a question that the model allows.
//
//nolint:gochecknoglobals // A fixture that no test changes.
var viewerKey = &tuplev1.TupleKey{Object: "doc:1", Relation: "viewer", User: "user:1"}

// fakeOpenFGA is an OpenFGA with a fixed answer.
type fakeOpenFGA struct {
	OpenFGAClient
	err error
	// listed receives the request of ListObjects, and users that of ListUsers.
	listed *openfgav1.ListObjectsRequest
	users  *openfgav1.ListUsersRequest
	// results is the number of objects or users that it returns, after a delay.
	results int
	delay   time.Duration
}

func (a fakeOpenFGA) Check(context.Context, *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error) {
	return &openfgav1.CheckResponse{Allowed: true}, a.err
}

func (a fakeOpenFGA) ListObjects(_ context.Context, r *openfgav1.ListObjectsRequest) (*openfgav1.ListObjectsResponse, error) {
	if a.listed != nil {
		proto.Merge(a.listed, r)
	}
	<-time.After(a.delay)
	return &openfgav1.ListObjectsResponse{Objects: slices.Repeat([]string{"doc:1"}, a.results)}, a.err
}

func (a fakeOpenFGA) ListUsers(_ context.Context, r *openfgav1.ListUsersRequest) (*openfgav1.ListUsersResponse, error) {
	if a.users != nil {
		proto.Merge(a.users, r)
	}
	<-time.After(a.delay)
	everyone := &openfgav1.User{User: &openfgav1.User_Wildcard{Wildcard: &openfgav1.TypedWildcard{Type: "user"}}}
	anne := &openfgav1.User{User: &openfgav1.User_Object{Object: &openfgav1.Object{Type: "user", Id: "anne"}}}
	return &openfgav1.ListUsersResponse{Users: append(slices.Repeat([]*openfgav1.User{everyone}, a.results), anne)}, a.err
}

func TestListObjectsPassesContext(t *testing.T) {
	given := &structpb.Struct{Fields: map[string]*structpb.Value{"now": structpb.NewStringValue("2026")}}
	listed := &openfgav1.ListObjectsRequest{}
	if _, err := newQueryFixture(t, one).server(fakeOpenFGA{listed: listed}).ListObjects(context.Background(), &tuplev1.ListObjectsRequest{
		Store: "a", Type: "doc", Relation: "viewer", User: "user:1", Context: given, HigherConsistency: true,
		ContextualTuples: []*tuplev1.TupleKey{{Object: "doc:1", Relation: "viewer", User: "user:1", Condition: &tuplev1.Condition{Name: "large"}}},
	}); err != nil {
		t.Fatal(err)
	}
	want := &openfgav1.ListObjectsRequest{
		StoreId: "S1", AuthorizationModelId: "model", Type: "doc", Relation: "viewer", User: "user:1", Context: given,
		ContextualTuples: &openfgav1.ContextualTupleKeys{TupleKeys: []*openfgav1.TupleKey{
			{Object: "doc:1", Relation: "viewer", User: "user:1", Condition: &openfgav1.RelationshipCondition{Name: "large"}},
		}},
		Consistency: openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY,
	}
	if !proto.Equal(listed, want) {
		t.Errorf("got %v, want %v", listed, want)
	}
}

func TestCheckConvertsErrorsOfOpenFGA(t *testing.T) {
	s := newQueryFixture(t, one)
	for name, c := range map[string]struct {
		err  error
		code connect.Code
		text string
	}{
		"a refused question": {errors.New("OpenFGA answers validation_error (2000): Invalid tuple 'x'. Reason: type 'x' not found"), connect.CodeInvalidArgument, "refuses the question: type 'x' not found"},
		"a lost store":       {fga.ErrStoreNotFound, connect.CodeNotFound, "create it again"},
		"a lost model":       {fga.ErrModelNotFound, connect.CodeNotFound, "create it again"},
		"too many steps":     {fmt.Errorf("check: %w", fga.ErrTooComplex), connect.CodeResourceExhausted, "undecided"},
		"too little time":    {fault.Unavailable(fga.ErrTimeout), connect.CodeDeadlineExceeded, "undecided"},
		"an outage":          {fault.Unavailable(errors.New("10.0.0.1 refused")), connect.CodeUnknown, ""},
	} {
		_, err := s.server(fakeOpenFGA{err: c.err}).Check(context.Background(), &tuplev1.CheckRequest{Store: "a", Key: viewerKey})
		if connect.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := s.server(fakeOpenFGA{}).Check(context.Background(), &tuplev1.CheckRequest{Store: "a", Key: viewerKey}); err != nil || got.GetStoreId() != "S1" || got.GetAuthorizationModelId() != "model" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestQueriesExplainFailure(t *testing.T) {
	s := newQueryFixture(t).server(nil)
	if _, err := s.ListTuples(context.Background(), &tuplev1.ListTuplesRequest{Store: "none"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("an unknown Store: %v", err)
	}
	if _, err := s.ListTuples(context.Background(), &tuplev1.ListTuplesRequest{Store: "a", Owner: "m"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("half an owner: %v", err)
	}
	s.cfg.Complete = func() error { return informer.ErrIncomplete }
	calls := map[string]func() error{
		"ListTuples": func() error {
			_, err := s.ListTuples(context.Background(), &tuplev1.ListTuplesRequest{Store: "a"})
			return err
		},
		"ListUndeclaredTuples": func() error {
			_, err := s.ListUndeclaredTuples(context.Background(), &tuplev1.ListUndeclaredTuplesRequest{Store: "a"})
			return err
		},
		"ExplainTuple": func() error {
			_, err := s.ExplainTuple(context.Background(), &tuplev1.ExplainTupleRequest{Store: "a"})
			return err
		},
		"Check": func() error { _, err := s.Check(context.Background(), &tuplev1.CheckRequest{Store: "a"}); return err },
		"ListObjects": func() error {
			_, err := s.ListObjects(context.Background(), &tuplev1.ListObjectsRequest{Store: "a"})
			return err
		},
		"ListUsers": func() error {
			_, err := s.ListUsers(context.Background(), &tuplev1.ListUsersRequest{Store: "a"})
			return err
		},
		"ExplainCheck": func() error {
			_, err := s.ExplainCheck(context.Background(), &tuplev1.ExplainCheckRequest{Store: "a"})
			return err
		},
		"Expand": func() error { _, err := s.Expand(context.Background(), &tuplev1.ExpandRequest{Store: "a"}); return err },
	}
	for name, call := range calls {
		if err := call(); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("%s of an incomplete view: %v", name, err)
		}
	}
}

func TestEveryProcedureRequiresStoreRight(t *testing.T) {
	for procedure, request := range map[string]any{
		tuplev1connect.TupleServiceListTuplesProcedure:           &tuplev1.ListTuplesRequest{Store: "a"},
		tuplev1connect.TupleServiceListUndeclaredTuplesProcedure: &tuplev1.ListUndeclaredTuplesRequest{Store: "a"},
		tuplev1connect.TupleServiceExplainTupleProcedure:         &tuplev1.ExplainTupleRequest{Store: "a"},
		tuplev1connect.TupleServiceCheckProcedure:                &tuplev1.CheckRequest{Store: "a"},
		tuplev1connect.TupleServiceExplainCheckProcedure:         &tuplev1.ExplainCheckRequest{Store: "a"},
		tuplev1connect.TupleServiceListUsersProcedure:            &tuplev1.ListUsersRequest{Store: "a"},
		tuplev1connect.TupleServiceListObjectsProcedure:          &tuplev1.ListObjectsRequest{Store: "a"},
		tuplev1connect.TupleServiceExpandProcedure:               &tuplev1.ExpandRequest{Store: "a"},
		tuplev1connect.TupleServicePreviewAdoptionProcedure:      &tuplev1.PreviewAdoptionRequest{},
	} {
		right, err := requiredAccess("a")[procedure](request)
		if err != nil || right.String() != "get stores.core.platform-mesh.io/a" {
			t.Errorf("%s asks for %q, %v", procedure, right, err)
		}
	}
}
