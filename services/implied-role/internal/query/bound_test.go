package query

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// largest bounds every answer: all its lists, and one row more.
const largest = 6*maxList + 6*maxPart

// long returns a role name of nearly the maximal length.
func long(i int) string { return fmt.Sprintf("r%04d-%s", i, strings.Repeat("x", 240)) }

// chain makes rules by which each role implies the next.
func (w *queryEnv) chain(roles int) {
	w.t.Helper()
	for i := range roles - 1 {
		w.do("team", long(i)+">"+long(i+1))
	}
}

func (w *queryEnv) bounded(what string, m proto.Message) {
	w.t.Helper()
	if n := proto.Size(m); n > largest {
		w.t.Errorf("%s has %d bytes, more than %d", what, n, largest)
	}
}

func TestPageThatFitsSplitsLargeRows(t *testing.T) {
	w := newQueryEnv(t)
	const roles = 300
	w.chain(roles)
	next, pages, token := 0, 0, ""
	for {
		page := must(w.ListInferences(t.Context(), &inferencev1.ListInferencesRequest{PageSize: 1000, PageToken: token}))(t)
		w.bounded("a page", page)
		for _, row := range page.GetInferences() {
			if left := int64(roles - 1 - next); row.GetParent().GetName() != long(next) || row.GetChildRolesTotal() != left {
				t.Fatalf("row %d is %s with %d", next, row.GetParent().GetName(), row.GetChildRolesTotal())
			}
			if row.GetTruncated() != (int64(len(row.GetChildRoles())) < row.GetChildRolesTotal()) {
				t.Fatalf("row %d has %d of %d, truncated: %v", next, len(row.GetChildRoles()), row.GetChildRolesTotal(), row.GetTruncated())
			}
			next++
		}
		pages++
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if next != roles-1 || pages < 4 {
		t.Errorf("%d rows on %d pages", next, pages)
	}
}

func TestUnpagedAnswersAreTruncatedAndMarked(t *testing.T) {
	w := newQueryEnv(t)
	const roles = 900
	w.chain(roles)
	var who []string
	for i := range 2000 {
		who = append(who, fmt.Sprintf("%04d-%s", i, strings.Repeat("u", 100)))
	}
	w.do("team", "B1="+long(0)+"{u} B2="+long(0)+"{"+strings.Join(who, ",")+"}")
	first, last, u := toRoleMessage(role(long(0))), toRoleMessage(role(long(roles-1))), &inferencev1.Subject{Kind: "User", Name: "u"}

	explained := must(w.ExplainRole(t.Context(), &inferencev1.ExplainRoleRequest{Namespace: "team", Subject: u, Role: last}))(t)
	w.bounded("an explanation", explained)
	if reason := explained.GetReasons()[0]; !reason.GetTruncated() || len(reason.GetPath()) == 0 {
		t.Errorf("a path of %d steps, truncated: %v", len(reason.GetPath()), reason.GetTruncated())
	}
	source := must(w.ExplainBinding(t.Context(), &inferencev1.ExplainBindingRequest{Namespace: "team", Name: "B2", MaxPaths: 100}))(t)
	w.bounded("an explanation of a binding", source)
	if !source.GetTruncated() || source.GetSubjectsTotal() != 2000 || len(source.GetSubjects()) == 2000 {
		t.Errorf("truncated: %v, %d of %d subjects", source.GetTruncated(), len(source.GetSubjects()), source.GetSubjectsTotal())
	}
	implying := must(w.ListImplyingRoles(t.Context(), &inferencev1.ListImplyingRolesRequest{Namespace: "team", Role: last}))(t)
	w.bounded("implying roles", implying)
	if implying.GetTotal() != roles-1 || implying.GetTruncated() != (len(implying.GetRoles()) < roles-1) {
		t.Errorf("%d of %d implying roles, truncated: %v", len(implying.GetRoles()), implying.GetTotal(), implying.GetTruncated())
	}
	effective := must(w.ListEffectiveRoles(t.Context(), &inferencev1.ListEffectiveRolesRequest{Namespace: "team", Subject: u}))(t)
	w.bounded("effective roles", effective)
	if effective.GetTotal() != roles || effective.GetTruncated() != (len(effective.GetRoles()) < roles) {
		t.Errorf("%d of %d effective roles, truncated: %v", len(effective.GetRoles()), effective.GetTotal(), effective.GetTruncated())
	}
	status := must(w.GetSyncStatus(t.Context(), &inferencev1.GetSyncStatusRequest{}))(t)
	w.bounded("a status", status)
	if is := status.GetNamespaces()[0]; is.GetNotSyncedTotal() != roles-1 || len(is.GetNotSynced()) == 0 || len(is.GetNotSynced()) == roles-1 {
		t.Errorf("%d of %d rules are named", len(is.GetNotSynced()), is.GetNotSyncedTotal())
	}
	preview := must(w.PreviewRules(t.Context(), &inferencev1.PreviewRulesRequest{Namespace: "team", Changes: []*inferencev1.RuleChange{
		{Name: "back", Parent: last, Child: first}, {Name: "wrong", Parent: first, Child: first},
	}}))(t).GetPreview()
	w.bounded("a preview", preview)
	if !preview.GetTruncated() || len(preview.GetInferences()) == 0 || len(preview.GetRefusals()) != 1 ||
		preview.GetNewCycles()[0].GetRolesTotal() != roles {
		t.Errorf("a preview of %d rows, truncated: %v", len(preview.GetInferences()), preview.GetTruncated())
	}
}

func TestCheckDriftListsSomeAndCountsAll(t *testing.T) {
	w := newQueryEnv(t)
	w.chain(30)
	const bindings = 60
	for i := range bindings {
		w.do("team", fmt.Sprintf("B%d=%s{u}", i, long(0)))
	}
	w.do("team", infer.GeneratedName("B0", role(long(1)))+"=other{m}")
	drift := must(w.CheckDrift(t.Context(), &inferencev1.CheckDriftRequest{Namespace: "team"}))(t)
	w.bounded("a check", drift)
	if drift.GetInStep() || !drift.GetTruncated() || drift.GetMissingTotal() != bindings*29-1 || drift.GetConflictsTotal() != 1 ||
		len(drift.GetMissing()) == 0 || len(drift.GetMissing()) > maxListed {
		t.Errorf("%d of %d missing, %d conflicts", len(drift.GetMissing()), drift.GetMissingTotal(), drift.GetConflictsTotal())
	}
}

// hangingAPIServer is an API server that never answers.
type hangingAPIServer struct{ asked chan struct{} }

func (s hangingAPIServer) List(ctx context.Context, _ kinds.Kind, _ string) iter.Seq2[event.Change, error] {
	return func(yield func(event.Change, error) bool) {
		s.asked <- struct{}{}
		<-ctx.Done()
		yield(event.Change{}, ctx.Err())
	}
}

func TestCheckDriftLimitsNamespaces(t *testing.T) {
	w := newQueryEnv(t)
	server := hangingAPIServer{make(chan struct{})}
	w.cfg.Lister = server
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	check := func() {
		_, err := w.CheckDrift(ctx, &inferencev1.CheckDriftRequest{Namespace: "team"})
		done <- err
	}
	for range maxChecks {
		go check()
		<-server.asked
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := w.CheckDrift(gone, &inferencev1.CheckDriftRequest{Namespace: "team"}); err == nil {
		t.Error("one too many was let in") // A list that begins would block here.
	}
	stop()
	for range maxChecks {
		if err := <-done; err == nil {
			t.Error("a check of nothing succeeded")
		}
	}
}

func TestWhoHasRolePagesLongNames(t *testing.T) {
	w := newQueryEnv(t)
	const holders = 7
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "B", Namespace: "team"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "a"}}
	var want []string
	for i := range holders {
		want = append(want, strings.Repeat("n", 5000)+fmt.Sprint(i))
		b.Subjects = append(b.Subjects, user(want[i]))
	}
	w.put(kinds.RoleBindings(), "team", "B", b)
	var got []string
	for token, more := "", true; more; more = token != "" {
		page := must(w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{
			Namespace: "team", Role: toRoleMessage(role("a")), PageSize: 2, PageToken: token,
		}))(t)
		for _, h := range page.GetHolders() {
			got = append(got, h.GetSubject().GetName())
		}
		if token = page.GetNextPageToken(); len(token) > 2048 {
			t.Fatalf("a token of %d characters is refused", len(token))
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%d holders", len(got))
	}
}

func TestWatchSplitsLargeChanges(t *testing.T) {
	w := newQueryEnv(t)
	w.chain(200)
	w.cfg.Changes.flushDirtyNamespaces()
	r, err := w.reader("", "")
	if err != nil {
		t.Fatal(err)
	}
	before := r.token
	w.do("team", long(199)+">end")
	w.cfg.Changes.flushDirtyNamespaces()
	r.types = ""
	var parts []*inferencev1.WatchInferencesResponse
	send := r.out
	r.out = func(m *inferencev1.WatchInferencesResponse) error {
		w.bounded("a part", m)
		parts = append(parts, m)
		return send(m)
	}
	if err := r.read(t); err != nil || len(parts) < 2 || parts[0].GetResumeToken() != before || r.token == before {
		t.Errorf("%d parts, %v", len(parts), err)
	}
	fresh, err := w.reader("", "")
	if err != nil || fresh.rows.String() != r.rows.String() {
		t.Errorf("the followed rows differ from the current ones: %v", err)
	}
	for i := range 700 {
		w.do("team", fmt.Sprintf("s%d>s%d", i, i+1))
	}
	w.cfg.Changes.flushDirtyNamespaces()
	if err := r.read(t); err != errTooOld {
		t.Errorf("after a very large change: %v", err)
	}
	fresh, err = w.reader("", "")
	if err != nil || len(fresh.rows) != 900 {
		t.Errorf("%d rows, %v", len(fresh.rows), err)
	}
	w.do("team", "later>s0")
	w.cfg.Changes.flushDirtyNamespaces()
	if err := fresh.read(t); err != nil || len(fresh.rows) != 901 {
		t.Errorf("then %d rows, %v", len(fresh.rows), err)
	}
	if _, err := w.ListInferences(t.Context(), &inferencev1.ListInferencesRequest{PageToken: "none"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("of a wrong token: %v", err)
	}
}

func TestPageTokenIsBoundToListAndFilter(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b c>d e>f B1=b{u} B2=b{v} B3=b{w}")
	w.putRole("team", "d")
	first := must(w.ListInferences(t.Context(), &inferencev1.ListInferencesRequest{Namespace: "team", PageSize: 1}))(t)
	token := first.GetNextPageToken()
	if page := must(w.ListInferences(t.Context(), &inferencev1.ListInferencesRequest{Namespace: "team", PageSize: 2, PageToken: token}))(t); len(page.GetInferences()) != 2 {
		t.Errorf("the rest is %v", page)
	}
	_, err := w.ListInferences(t.Context(), &inferencev1.ListInferencesRequest{PageToken: token})
	expectRefused(t, err, connect.CodeInvalidArgument, "to another list or filter")
	_, err = w.ListRules(t.Context(), &inferencev1.ListRulesRequest{Namespace: "team", PageToken: token})
	expectRefused(t, err, connect.CodeInvalidArgument, "to another list or filter")
	holders := must(w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{Namespace: "team", Role: toRoleMessage(role("b")), PageSize: 1}))(t)
	_, err = w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{
		Namespace: "team", Role: toRoleMessage(role("d")), PageToken: holders.GetNextPageToken(),
	})
	expectRefused(t, err, connect.CodeInvalidArgument, "to another list or filter")
}

func TestEveryProcedureHasNoSideEffects(t *testing.T) {
	methods := inferencev1.File_entail_inference_v1_inference_proto.Services().ByName("InferenceService").Methods()
	for i := range methods.Len() {
		options, ok := methods.Get(i).Options().(*descriptorpb.MethodOptions)
		if harmless := ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS; !harmless && !methods.Get(i).IsStreamingServer() {
			t.Errorf("%s may not be put by GET", methods.Get(i).Name())
		}
	}
}
