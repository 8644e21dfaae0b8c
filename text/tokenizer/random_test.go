package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// draw is the random number generator of testdata/draw.py.
type draw uint64

func (d *draw) below(n int) int {
	*d = *d*6364136223846793005 + 1442695040888963407
	return int(uint64(*d) >> 33 % uint64(n))
}

// A digest covers many strings instead of a golden file with all of them.
type digest struct{ hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

func (d digest) add(s string) { d.Write(append([]byte(s), 0)) }

func (d digest) String() string { return hex.EncodeToString(d.Sum(nil)[:8]) }
