package knobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// What the second variant does not say is as the ring has it, and goes with that.
func TestStreamOfVariants(t *testing.T) {
	c := ir.ScheduleConfig{}
	Pace.Set(&c, 500)
	require.Equal(t, Stream{RunAhead: 8, Pace: 500}, StreamOf(&c, 0))
	require.Equal(t, StreamOf(&c, 0), StreamOf(&c, 512))
	p := &ir.Program{Config: c, Variants: []ir.Variant{{Lo: 0, Hi: 511}, {Lo: 512, Hi: 1023}}}
	require.False(t, StreamsApart(p))
	LongStock.Set(&p.Config, 4)
	require.Equal(t, Stream{RunAhead: 8, Pace: 500, Stock: 4}, StreamOf(&p.Config, 512))
	require.Equal(t, Stream{RunAhead: 8, Pace: 500}, StreamOf(&p.Config, 0))
	require.True(t, StreamsApart(p))
	p.Variants = p.Variants[:1]
	require.False(t, StreamsApart(p))
	LongRotation.Set(&c, 3)
	require.Equal(t, []int{0, 3}, []int{RotationOf(&c, 0), RotationOf(&c, 512)})
	for _, k := range VariantConstants() {
		require.NotContains(t, Constants(), k, "a build whose variants stream alike has none")
		require.False(t, k.Row().Order)
	}
}

// What is said of a variant that there is not is refused.
func TestNoSecondVariant(t *testing.T) {
	c := tiling("long", "pace", 500)
	require.Nil(t, CheckVariants(&c, []ir.Variant{{Lo: 0}, {Lo: 512}}))
	require.ErrorContains(t, CheckVariants(&c, []ir.Variant{{Lo: 0}}),
		"tiling.long.pace: error: 500 would have no effect")
	require.Nil(t, CheckVariants(&ir.ScheduleConfig{}, []ir.Variant{{Lo: 0}}))
	c = tiling("short", "rotation", 2)
	require.Nil(t, CheckVariants(&c, []ir.Variant{{Lo: 0}}))
}

// A variant of fewer splits has positions of its own, and a variant needs at least one.
func TestMiddleVariant(t *testing.T) {
	c := tiling("attention", "middle_splits", 8)
	require.Nil(t, CheckVariants(&c, []ir.Variant{{Lo: 0}, {Lo: 512, Name: Middle}, {Lo: 4096}}))
	require.ErrorContains(t, CheckVariants(&c, []ir.Variant{{Lo: 0}, {Lo: 512}}),
		"tiling.attention.middle_splits: error: 8 would have no effect: there are no positions from "+
			"attention.split_from (512) up to attention.middle_until (0)")
	refused := func(c ir.ScheduleConfig) error {
		_, diags := Resolve(c, toyModel(), toyTarget(), Build{})
		return diags.Err()
	}
	require.NoError(t, refused(c))
	require.ErrorContains(t, refused(tiling("attention", "middle_splits", 1)), "one split is what there is below")
	require.ErrorContains(t, refused(tiling("attention", "middle_until", 1024)), "attention.middle_splits is 0")
	MiddleUntil.Set(&c, 1024)
	require.NoError(t, refused(c))
	SplitFrom.Set(&c, 0)
	require.ErrorContains(t, refused(c), "8: attention.split_from is 0, and the positions with fewer splits")
}

// Without bulk copies nothing runs ahead and nothing is counted, in no variant.
func TestLongWithoutBulkCopies(t *testing.T) {
	plain := toyTarget()
	plain.BulkCopy = false
	for name, n := range map[string]int{"stock": 6, "pace": 900, "run_ahead": 4} {
		_, diags := Resolve(tiling("long", name, n), toyModel(), plain, Build{})
		require.ErrorContains(t, diags.Err(), "toy has no bulk copies", name)
	}
}
