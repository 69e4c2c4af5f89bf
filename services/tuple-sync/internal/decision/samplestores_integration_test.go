//go:build integration

package decision

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"github.com/openfga/openfga/pkg/server"
	"github.com/openfga/openfga/pkg/storage/memory"
	fgatuple "github.com/openfga/openfga/pkg/tuple"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"
)

// samplesVariable names a folder with stores in the format of OpenFGA's command line, at any depth: a checkout of
// openfga/sample-stores. Without it, only the stores of testdata are tested, because the samples are not part of this repository.
const samplesVariable = "ENTAIL_SAMPLE_STORES"

// sampleStore is a file *.fga.yaml: a model, tuples, and questions with the expected answers.
type sampleStore struct {
	Model      string
	ModelFile  string `json:"model_file"`
	Tuples     []*openfgav1.TupleKey
	TupleFile  string   `json:"tuple_file"`
	TupleFiles []string `json:"tuple_files"`
	Tests      []sampleTest
}

type sampleTest struct {
	Name      string
	Tuples    []*openfgav1.TupleKey
	TupleFile string `json:"tuple_file"`
	Check     []struct {
		User, Object   string
		Users, Objects []string
		Context        *structpb.Struct
		Assertions     map[string]bool
	}
	ListObjects []struct {
		User, Type string
		Context    *structpb.Struct
		Assertions map[string][]string
	} `json:"list_objects"`
	ListUsers []struct {
		Object     string
		UserFilter []*openfgav1.UserTypeFilter `json:"user_filter"`
		Context    *structpb.Struct
		Assertions map[string]struct{ Users []string }
	} `json:"list_users"`
}

// TestTreesOfSampleStoresHaveTheirAssertedAnswers asks a real OpenFGA server in this process every question of sample stores. It
// compares the answers of Check and of both lists with the assertions, and the answer of each tree with that of Check.
func TestTreesOfSampleStoresHaveTheirAssertedAnswers(t *testing.T) {
	s := server.MustNewServerWithOpts(server.WithDatastore(memory.New()))
	t.Cleanup(s.Close)
	folders := []string{"testdata/stores"}
	if samples := os.Getenv(samplesVariable); samples != "" {
		folders = append(folders, samples)
	}
	counts := map[string]int{}
	for _, folder := range folders {
		for _, file := range filesNamed(t, folder, ".fga.yaml") {
			counts["stores"]++
			t.Run(strings.TrimPrefix(file, folder+"/"), func(t *testing.T) { newSampleRun(t, s, file, counts).run() })
		}
	}
	t.Logf("%v", counts)
	if counts["yes"] == 0 || counts["no"] == 0 || counts["lists"] == 0 {
		t.Errorf("got %v, want answers of each kind", counts)
	}
}

func filesNamed(t *testing.T, folder, suffix string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sampleRun is a sample store in OpenFGA.
type sampleRun struct {
	t      *testing.T
	server *server.Server
	sample sampleStore
	folder string
	store  string
	types  *typesystem.TypeSystem
	tuples []*openfgav1.TupleKey
	counts map[string]int
}

func newSampleRun(t *testing.T, s *server.Server, file string, counts map[string]int) *sampleRun {
	t.Helper()
	r := &sampleRun{t: t, server: s, folder: filepath.Dir(file), counts: counts}
	r.decode(file, &r.sample)
	m := r.model()
	r.types = typesOf(t, m)
	created, err := s.CreateStore(t.Context(), &openfgav1.CreateStoreRequest{Name: "sample"})
	if err != nil {
		t.Fatal(err)
	}
	r.store = created.GetId()
	if _, err := s.WriteAuthorizationModel(t.Context(), &openfgav1.WriteAuthorizationModelRequest{
		StoreId: r.store, SchemaVersion: m.GetSchemaVersion(), TypeDefinitions: m.GetTypeDefinitions(), Conditions: m.GetConditions(),
	}); err != nil {
		t.Fatal(err)
	}
	r.tuples = slices.Clone(r.sample.Tuples)
	for _, name := range append(r.sample.TupleFiles, r.sample.TupleFile) {
		r.tuples = append(r.tuples, r.tuplesIn(name)...)
	}
	for batch := range slices.Chunk(r.tuples, 40) {
		if _, err := s.Write(t.Context(), &openfgav1.WriteRequest{StoreId: r.store, Writes: &openfgav1.WriteRequestWrites{TupleKeys: batch}}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *sampleRun) decode(file string, into any) {
	r.t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		r.t.Fatalf("%s: %v", file, err)
	}
}

func (r *sampleRun) read(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.folder, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

func (r *sampleRun) tuplesIn(name string) (tuples []*openfgav1.TupleKey) {
	r.t.Helper()
	if name != "" {
		r.decode(filepath.Join(r.folder, name), &tuples)
	}
	return tuples
}

// model returns the model of a store: a text, a file, or the modules that a file fga.mod lists.
func (r *sampleRun) model() *openfgav1.AuthorizationModel {
	r.t.Helper()
	if !strings.HasSuffix(r.sample.ModelFile, ".mod") {
		text := r.sample.Model
		if text == "" {
			text = r.read(r.sample.ModelFile)
		}
		return parseModel(r.t, text)
	}
	var list struct {
		Schema   string
		Contents []string
	}
	r.decode(filepath.Join(r.folder, r.sample.ModelFile), &list)
	files := make([]transformer.ModuleFile, len(list.Contents))
	for i, name := range list.Contents {
		files[i] = transformer.ModuleFile{Name: name, Contents: r.read(filepath.Join(filepath.Dir(r.sample.ModelFile), name))}
	}
	m, err := transformer.TransformModuleFilesToModel(files, list.Schema)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *sampleRun) run() {
	r.t.Helper()
	for _, test := range r.sample.Tests {
		given := append(slices.Clone(test.Tuples), r.tuplesIn(test.TupleFile)...)
		for _, c := range test.Check {
			for _, user := range append(c.Users, c.User) {
				for _, object := range append(c.Objects, c.Object) {
					for relation, want := range c.Assertions {
						if user != "" && object != "" {
							r.compareCheck(test.Name, given, Question{Object: object, Relation: relation, User: user, Context: c.Context}, want)
						}
					}
				}
			}
		}
		for _, l := range test.ListObjects {
			for relation, want := range l.Assertions {
				answer, err := r.server.ListObjects(r.t.Context(), &openfgav1.ListObjectsRequest{
					StoreId: r.store, Type: l.Type, Relation: relation, User: l.User, Context: l.Context, ContextualTuples: &openfgav1.ContextualTupleKeys{TupleKeys: given},
				})
				if r.compareList(test.Name, answer.GetObjects(), want, err); err != nil {
					continue
				}
				for _, object := range want {
					r.compareCheck(test.Name, given, Question{Object: object, Relation: relation, User: l.User, Context: l.Context}, true)
				}
			}
		}
		for _, l := range test.ListUsers {
			for relation, want := range l.Assertions {
				typ, id := fgatuple.SplitObject(l.Object)
				answer, err := r.server.ListUsers(r.t.Context(), &openfgav1.ListUsersRequest{
					StoreId: r.store, Object: &openfgav1.Object{Type: typ, Id: id}, Relation: relation, UserFilters: l.UserFilter, Context: l.Context, ContextualTuples: given,
				})
				var users []string
				for _, u := range answer.GetUsers() {
					users = append(users, fgatuple.UserProtoToString(u))
				}
				r.compareList(test.Name, users, want.Users, err)
				for _, user := range want.Users {
					r.compareCheck(test.Name, given, Question{Object: l.Object, Relation: relation, User: user, Context: l.Context}, true)
				}
			}
		}
	}
}

// compareCheck compares an assertion with the answer of Check, and this answer with that of the tree.
func (r *sampleRun) compareCheck(name string, given []*openfgav1.TupleKey, q Question, want bool) {
	r.t.Helper()
	answer, err := r.server.Check(r.t.Context(), &openfgav1.CheckRequest{
		StoreId: r.store, Context: q.Context, ContextualTuples: &openfgav1.ContextualTupleKeys{TupleKeys: given},
		TupleKey: &openfgav1.CheckRequestTupleKey{Object: q.Object, Relation: q.Relation, User: q.User},
	})
	if err != nil || answer.GetAllowed() != want {
		r.t.Errorf("%s: check %v: got %t, %v; want %t", name, q, answer.GetAllowed(), err, want)
		return
	}
	tree, truncated := explain(r.t, r.types, WithRequestTuples(tupleList{tuples: r.tuples}, given), q)
	r.counts[map[bool]string{true: "yes", false: "no"}[want]]++
	if expected := map[bool]Answer{true: Yes, false: No}[want]; tree.Answer != expected || truncated {
		r.t.Errorf("%s: why %v: got %v (truncated %t), want %v", name, q, tree.Answer, truncated, expected)
	}
}

func (r *sampleRun) compareList(name string, got, want []string, err error) {
	r.t.Helper()
	r.counts["lists"]++
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); err != nil || !slices.Equal(got, want) {
		r.t.Errorf("%s: list: got %q, %v; want %q", name, got, err, want)
	}
}
