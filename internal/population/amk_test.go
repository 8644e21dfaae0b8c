package population

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/amk"
	"amkc/ir/diag"
	"amkc/validate"
)

// verdict says whether a program is accepted: by Flatten, which refuses what has no flat form, and by the proof.
func verdict(p *amk.Program) diag.List {
	flat, diags := p.Flatten()
	if flat == nil {
		return diags
	}
	return validate.Flat(flat).Diags.Errors()
}

// distinct checks that a name is new.
func distinct(t *testing.T, names map[string]bool, c Case) {
	require.False(t, names[c.Name], "%s comes up twice", c.Name)
	names[c.Name] = true
}

func TestLoweringsAreAccepted(t *testing.T) {
	names := map[string]bool{}
	for c := range Lowerings() {
		distinct(t, names, c)
		require.Equal(t, "lowering", c.Class)
		require.Nil(t, c.Flat)
		require.Nil(t, c.Program)
		require.Empty(t, verdict(c.Profile), c.Name)
	}
	require.Len(t, names, 360)
}

// The grid holds what it is said to vary: a shape that lost its point would go unnoticed otherwise.
func TestLoweringsVary(t *testing.T) {
	ops, layers, programs := map[amk.Op]bool{}, map[int64]bool{}, map[string]bool{}
	for c := range Lowerings() {
		n, _ := c.Profile.Meta.Int("n_layers")
		layers[n] = true
		programs[string(c.Profile.Marshal())] = true
		for i := range c.Profile.Tasks {
			ops[c.Profile.Tasks[i].Op] = true
		}
	}
	require.Len(t, programs, 360)
	require.Equal(t, map[int64]bool{1: true, 2: true, 3: true, 4: true, 12: true}, layers)
	require.True(t, ops[amk.GEMMTile] && ops[amk.GEMVTile] && ops[amk.AttentionCombine])
}

func TestMutants(t *testing.T) {
	names, classes := map[string]bool{}, map[string]int{}
	for c := range Mutants() {
		distinct(t, names, c)
		require.NotNil(t, c.Profile)
		classes[c.Class]++
	}
	require.Len(t, names, 2800)
	require.Len(t, classes, 8)
	for class, n := range classes {
		require.Equal(t, 350, n, class)
	}
}

func TestMutantsDifferFromTheirBase(t *testing.T) {
	for _, class := range MutantClasses() {
		for seed := range uint64(draws(25)) {
			before := loweringBytes(t, class, seed)
			c, base := mutate(class, seed)
			require.Equal(t, before, string(base.prog.Marshal()), "%s changed its base", c.Name)
			require.NotEqual(t, before, string(c.Profile.Marshal()), c.Name)
			again := Mutate(class, seed)
			require.Equal(t, c.Name, again.Name)
			require.Equal(t, string(c.Profile.Marshal()), string(again.Profile.Marshal()), c.Name)
		}
	}
}

// loweringBytes lowers the base of a mutant anew.
func loweringBytes(t *testing.T, class string, seed uint64) string {
	_, base := mutate(class, seed)
	for i := range decoders {
		for _, width := range tileWidths {
			for _, pos := range positions {
				if base.name == gridName(&decoders[i], width, pos) {
					p, err := amk.Lower(decoders[i].request(width, pos))
					require.NoError(t, err)
					return string(p.Marshal())
				}
			}
		}
	}
	t.Fatalf("%s is no point of the grid", base.name)
	return ""
}

// TestMutantsAreRejected: most classes have no safe member. In one that has some, a wait that is dropped may be
// implied. AMKC_LONG asks for all mutants of the published population, and else it is the first of each class.
func TestMutantsAreRejected(t *testing.T) {
	perClass := 60
	if os.Getenv("AMKC_LONG") != "" {
		perClass = mutantsPerClass
	}
	accepted := map[string]int{}
	for _, class := range MutantClasses() {
		for seed := range uint64(perClass) {
			if c := Mutate(class, seed); !sharedMemory(c.Profile) && len(verdict(c.Profile)) == 0 {
				accepted[class]++
			}
		}
	}
	require.Positive(t, accepted["drop_wait"])
	require.Less(t, accepted["drop_wait"], perClass/2)
	delete(accepted, "drop_wait")
	require.Empty(t, accepted)
}

// sharedMemory reports whether a mutant is wrong in that no SM of its target has the shared memory that it asks for.
// The proof of a Flat knows no target, and cannot see it.
func sharedMemory(p *amk.Program) bool { return p.Pages != nil && p.Pages.Pages[0].Space == amk.SMEM }

func BenchmarkMutate(b *testing.B) {
	classes := MutantClasses()
	Mutate(classes[0], 0)
	for i := 0; b.Loop(); i++ {
		Mutate(classes[i%len(classes)], uint64(i))
	}
}

func TestUnknownClass(t *testing.T) {
	require.False(t, slices.Contains(MutantClasses(), "none"))
	require.Panics(t, func() { Mutate("none", 0) })
}
