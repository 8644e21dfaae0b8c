package host

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// buffer is that of one SM whose clock runs at a cycle a nanosecond from 1000 on, with room for two spans of each role.
func buffer(consumer, producer uint32, spans ...[4]uint32) []byte {
	const capacity = 2
	le := binary.LittleEndian
	raw := make([]byte, profileBytes(1, capacity))
	for i, v := range []uint64{1000, 50_000, 9000, 58_000} {
		le.PutUint64(raw[profileHeaderSize+8*i:], v)
	}
	le.PutUint32(raw[profileHeaderSize+32:], consumer)
	le.PutUint32(raw[profileHeaderSize+recordingSize+32:], producer)
	for i, span := range spans {
		for k, word := range span {
			le.PutUint32(raw[profileHeaderSize+2*recordingSize+i*spanSize+4*k:], word)
		}
	}
	return raw
}

func TestSpansThatDoNotFitAreCounted(t *testing.T) {
	raw := buffer(7, 1, [4]uint32{1000, 2000, 0 | 1<<16, 3 | 5<<16}, [4]uint32{2000, 2500, 9, 3 | 5<<16},
		[4]uint32{900, 1100, 0 | 3<<16, 4 | 6<<16})
	got, err := decodeSpans(raw, 1, 2, []string{"L{i}.down"})
	require.NoError(t, err)
	require.Equal(t, 5, got.dropped)
	require.Equal(t, []Span{
		{SM: 0, Role: "consumer", Kind: "compute", Stage: "L03.down", Step: 5, Start: 0, End: 1},
		{SM: 0, Role: "consumer", Kind: "exchange wait", Stage: "stage 9 of layer 3", Step: 5, Start: 1, End: 1.5},
		{SM: 0, Role: "producer", Kind: "slot wait", Stage: "L04.down", Step: 6, Start: -0.1, End: 0.1},
	}, got.spans)

	require.Equal(t, []Span{
		{SM: 0, Role: "consumer", Kind: "compute", Stage: "L03.down", Step: 0, Start: 0, End: 1},
		{SM: 0, Role: "consumer", Kind: "exchange wait", Stage: "stage 9 of layer 3", Step: 0, Start: 1, End: 1.5},
		{SM: 0, Role: "producer", Kind: "slot wait", Stage: "L04.down", Step: 1, Start: 0, End: 0.1},
	}, got.window(5, 1), "what began before is cut off")
	require.Empty(t, got.window(4, 1))
}

func TestSpansNextToEachOtherAreOne(t *testing.T) {
	got, err := decodeSpans(buffer(2, 0, [4]uint32{1000, 2000, 2 << 16, 0}, [4]uint32{2000, 2100, 2 << 16, 0}), 1, 2,
		[]string{"embed"})
	require.NoError(t, err)
	require.Equal(t, []Span{{Role: "consumer", Kind: "signal", Stage: "embed", Start: 0, End: 1.1}}, got.spans)
	got, err = decodeSpans(buffer(2, 0, [4]uint32{1000, 2000, 2 << 16, 0}, [4]uint32{2000, 2100, 2 << 16, 1 << 16}), 1,
		2, []string{"embed"})
	require.NoError(t, err)
	require.Len(t, got.spans, 2, "of another step")
}

func TestBrokenProfiles(t *testing.T) {
	_, err := decodeSpans(buffer(1, 0, [4]uint32{1000, 2000, 5 << 16, 0}), 1, 2, nil)
	require.ErrorContains(t, err, "is of kind 5")
	_, err = decodeSpans(make([]byte, profileBytes(2, 2)), 2, 2, nil)
	require.ErrorContains(t, err, "SM 0: its clock went on by 0 cycles")
}
