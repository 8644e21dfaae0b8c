package hostile

import (
	"testing"

	"amkc/internal/watch"
	"amkc/validate"
	"amkc/validate/kernel"
)

// Any bytes get a verdict or a clean error: nothing panics, and memory is linear in the file above a constant that the
// budgets set.
func FuzzVerdict(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		for _, backend := range []validate.Backend{validate.Reference, kernel.Backend} {
			requireLinear(t, len(data), func() { verdict(data, backend) })
		}
	})
}
