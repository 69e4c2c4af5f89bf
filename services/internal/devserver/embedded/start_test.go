package embedded

import (
	"path/filepath"
	"testing"
)

func BenchmarkStart(b *testing.B) {
	starts := map[string]func(dir string) (stop func(), err error){
		"NATS": func(dir string) (func(), error) {
			n, err := StartNATS(NATSConfig{Dir: dir})
			return n.Stop, err
		},
		"OpenFGA in memory": func(string) (func(), error) {
			o, err := StartOpenFGA(OpenFGAConfig{})
			return o.Stop, err
		},
		"OpenFGA in a new file": func(dir string) (func(), error) {
			o, err := StartOpenFGA(OpenFGAConfig{File: filepath.Join(dir, "openfga.db")})
			return o.Stop, err
		},
		"OpenFGA in a new file without fsync": func(dir string) (func(), error) {
			o, err := StartOpenFGA(OpenFGAConfig{File: filepath.Join(dir, "openfga.db"), UnsafeNoFsync: true})
			return o.Stop, err
		},
	}
	for name, start := range starts {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				stop, err := start(b.TempDir())
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				stop()
				b.StartTimer()
			}
		})
	}
}
