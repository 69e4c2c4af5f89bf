package checker

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// Tuple is a relationship.
type Tuple struct{ Object, Relation, User string }

// String returns OpenFGA's usual notation.
func (t Tuple) String() string { return t.Object + "#" + t.Relation + "@" + t.User }

// OpenFGAClient reads an OpenFGA server directly.
type OpenFGAClient struct {
	conn *grpc.ClientConn
	api  openfgav1.OpenFGAServiceClient
	// iam holds the IDs of the IAM store when they were last read.
	iam atomic.Pointer[knownStoreIDs]
}

type knownStoreIDs struct {
	ids  []string
	read time.Time
}

// DialOpenFGA connects to host:port.
func DialOpenFGA(target string) (*OpenFGAClient, error) {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return nil, fmt.Errorf("connecting to OpenFGA: %w", err)
	}
	return &OpenFGAClient{conn: conn, api: openfgav1.NewOpenFGAServiceClient(conn)}, nil
}

// Close ends the connection.
func (o *OpenFGAClient) Close() { _ = o.conn.Close() }

// StoreIDs returns the IDs of all stores, by name.
func (o *OpenFGAClient) StoreIDs(ctx context.Context) (map[string][]string, error) {
	ids, token := map[string][]string{}, ""
	for {
		page, err := o.api.ListStores(ctx, &openfgav1.ListStoresRequest{PageSize: wrapperspb.Int32(100), ContinuationToken: token})
		if err != nil {
			return nil, err
		}
		for _, s := range page.GetStores() {
			ids[s.GetName()] = append(ids[s.GetName()], s.GetId())
		}
		if token = page.GetContinuationToken(); token == "" {
			return ids, nil
		}
	}
}

// LatestModel returns the newest model of a store, or nil if the store has none.
func (o *OpenFGAClient) LatestModel(ctx context.Context, store string) (*openfgav1.AuthorizationModel, error) {
	page, err := o.api.ReadAuthorizationModels(ctx, &openfgav1.ReadAuthorizationModelsRequest{StoreId: store, PageSize: wrapperspb.Int32(1)})
	if err != nil || len(page.GetAuthorizationModels()) == 0 {
		return nil, err
	}
	return page.GetAuthorizationModels()[0], nil
}

// ReadModel returns one model of a store.
func (o *OpenFGAClient) ReadModel(ctx context.Context, store, id string) (*openfgav1.AuthorizationModel, error) {
	answer, err := o.api.ReadAuthorizationModel(ctx, &openfgav1.ReadAuthorizationModelRequest{StoreId: store, Id: id})
	return answer.GetAuthorizationModel(), err
}

// ReadTuples returns all tuples of a store.
func (o *OpenFGAClient) ReadTuples(ctx context.Context, store string) ([]Tuple, error) {
	var all []Tuple
	for token := ""; ; {
		page, err := o.api.Read(ctx, &openfgav1.ReadRequest{
			StoreId: store, PageSize: wrapperspb.Int32(100), ContinuationToken: token,
			Consistency: openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY,
		})
		if err != nil {
			return nil, err
		}
		for _, t := range page.GetTuples() {
			all = append(all, Tuple{t.GetKey().GetObject(), t.GetKey().GetRelation(), t.GetKey().GetUser()})
		}
		if token = page.GetContinuationToken(); token == "" {
			return all, nil
		}
	}
}

// maxBatch is the largest number of checks in one batch.
const maxBatch = 50

// CheckAllowed checks the questions against the newest model of a store, and returns those with the answer yes. A relation
// that the model lacks counts as no.
func (o *OpenFGAClient) CheckAllowed(ctx context.Context, store string, questions []Tuple) ([]Tuple, error) {
	var yes []Tuple
	for begin := 0; begin < len(questions); begin += maxBatch {
		part := questions[begin:min(begin+maxBatch, len(questions))]
		request := &openfgav1.BatchCheckRequest{StoreId: store, Consistency: openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY}
		for i, q := range part {
			request.Checks = append(request.Checks, &openfgav1.BatchCheckItem{
				CorrelationId: fmt.Sprint(i),
				TupleKey:      &openfgav1.CheckRequestTupleKey{Object: q.Object, Relation: q.Relation, User: q.User},
			})
		}
		answer, err := o.api.BatchCheck(ctx, request)
		if err != nil {
			return nil, err
		}
		for i, q := range part {
			if answer.GetResult()[fmt.Sprint(i)].GetAllowed() {
				yes = append(yes, q)
			}
		}
	}
	return yes, nil
}

// iamStoreIDs returns the OpenFGA IDs of the IAM store, at most one second old. It caches them, because each question
// already needs a Check.
func (o *OpenFGAClient) iamStoreIDs(ctx context.Context) ([]string, error) {
	if known := o.iam.Load(); known != nil && time.Since(known.read) < time.Second {
		return known.ids, nil
	}
	now := time.Now()
	stores, err := o.StoreIDs(ctx)
	if err != nil {
		return nil, err
	}
	o.iam.Store(&knownStoreIDs{stores[workload.IAMStore], now})
	return stores[workload.IAMStore], nil
}

// askIAM sends a Check of a permission to OpenFGA, which uses the newest model of the IAM store. It omits the
// contextual tuple of the object's namespace. Without this tuple, OpenFGA can only allow less.
func (o *OpenFGAClient) askIAM(ctx context.Context, _ string, q accessQuestion) (allowed bool, err error) {
	ids, err := o.iamStoreIDs(ctx)
	if err != nil {
		return false, err
	}
	object, user := openFGAObject(q.target, q.Resource.Namespace+"/"+q.Resource.Name), iamUser+q.Subject.User
	given := []*openfgav1.TupleKey{{Object: object, Relation: "k", User: rootObjectOf(q.target.OpenFGAType())}}
	for _, group := range q.Subject.Groups {
		object, relation, _ := strings.Cut(tokenGroupUserset(group), "#")
		given = append(given, &openfgav1.TupleKey{Object: object, Relation: relation, User: user})
	}
	for _, id := range ids {
		answer, err := o.api.Check(ctx, &openfgav1.CheckRequest{
			StoreId: id, ContextualTuples: &openfgav1.ContextualTupleKeys{TupleKeys: given},
			TupleKey:    &openfgav1.CheckRequestTupleKey{Object: object, Relation: sha256Hex(permissionOf(q))[:12], User: user},
			Consistency: openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY,
		})
		if err != nil || answer.GetAllowed() {
			return err == nil, err
		}
	}
	return false, nil
}
