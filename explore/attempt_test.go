package explore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of what a machine finds in a launch that was aborted, garbage is left out: not a race of a plain access and a word,
// nor anything that comes after.
func TestGarbageIsLeftOut(t *testing.T) {
	race := func(of string) Finding {
		return Finding{Kind: "race", Message: "data race of 4 bytes at exchange + 0x0: " + of}
	}
	all := []Finding{race("plain access write after plain access read"), race("word write after plain access read"),
		race("plain access write after atomic read"), race("bulk copy write after plain access read"),
		{Kind: "outside"}, race("plain access write after plain access read")}
	a := &attempt{garbage: 5}
	require.Equal(t, []Finding{all[1], all[2], all[4], all[5]}, a.withoutGarbage(all))
}
