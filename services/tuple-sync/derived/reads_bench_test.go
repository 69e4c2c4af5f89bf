//go:build !race

package derived

import (
	"fmt"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/internal/iam"
)

// readersPlain and readersHashed are two ways to find the readers of a look-up. A collision of hashes only costs a needless
// computation.
type (
	readersPlain struct {
		of   map[lookupRead]map[string]struct{}
		sets map[string][]lookupRead
	}
	readersHashed struct {
		of   map[uint64][]uint32
		sets [][]uint64
	}
)

// BenchmarkReadSets measures what read sets cost in memory and in time, beside the objects themselves.
func BenchmarkReadSets(b *testing.B) {
	for bindings, projects := range map[int]int{100_000: 1000, 5_000: 5_000} {
		b.Run(fmt.Sprint(bindings, " on ", projects), func(b *testing.B) {
			bed := newReconcilerEnv(b)
			bed.bindMany(bindings, projects, bindings/10)
			store, _ := bed.State.iamStore()
			o, objects := bed.State.declaredLookup(bed.State.currentInputIdentity(store), bed.model), map[string]bool{}
			for k := range bed.api {
				if bed.State.tableOf(k.GroupResource) != nil {
					for _, object := range bed.State.affectedOpenFGAObjects(k, alwaysHeld) {
						objects[object] = true
					}
				}
			}
			all := slices.Sorted(maps.Keys(objects))
			plain := readersPlain{map[lookupRead]map[string]struct{}{}, map[string][]lookupRead{}}
			before := inUse()
			for _, object := range all {
				plain.sets[object] = readSetOf(o, object)
				for _, r := range plain.sets[object] {
					if plain.of[r] == nil {
						plain.of[r] = map[string]struct{}{}
					}
					plain.of[r][object] = struct{}{}
				}
			}
			asPlain := inUse() - before
			runtime.KeepAlive(plain)
			hashed, seed := readersHashed{of: map[uint64][]uint32{}}, maphash.MakeSeed()
			before = inUse()
			for i, object := range all {
				var set []uint64
				for _, r := range readSetOf(o, object) {
					h := maphash.Comparable(seed, r)
					set = append(set, h)
					hashed.of[h] = append(hashed.of[h], uint32(i))
				}
				hashed.sets = append(hashed.sets, slices.Clip(set))
			}
			asHashed := inUse() - before
			runtime.KeepAlive(hashed)
			for b.Loop() {
				for _, object := range all {
					o.DesiredTuples(object)
				}
			}
			b.ReportMetric(float64(len(all))/float64(bindings), "objects/binding")
			b.ReportMetric(float64(asPlain)/float64(bindings), "B-plain/binding")
			b.ReportMetric(float64(asHashed)/float64(bindings), "B-hashed/binding")
		})
	}
}

// readSetOf returns the look-ups of a computation, each once.
func readSetOf(o *iam.DeclaredObjects, object string) (reads []lookupRead) {
	seen := map[lookupRead]bool{}
	recordReads(o, func(r lookupRead) {
		if !seen[r] {
			seen[r] = true
			reads = append(reads, r)
		}
	}).DesiredTuples(object)
	return reads
}
