package population

import (
	"compress/bzip2"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

// The committed programs are those that testdata/amk_ir/README.md describes, to the bit.
func TestPublishedFiles(t *testing.T) {
	for file, want := range map[string]string{
		"population.jsonl.bz2": "e26f6c259469e4fb002e0679768a4be24d5ffcfff27497c0dadd3b1bd879c3a9",
		"models.jsonl.bz2":     "73d0eb3a1b76406c0b7eea4ed1bbb2540cd0c831cfc803b3201500e44f01b02f",
		"requests.jsonl.bz2":   "0efb25805e36010f44da8288507b504d3d3d41d619217e965ac48a6d55bb48db",
	} {
		root, err := moduleRoot()
		require.NoError(t, err)
		f, err := os.Open(filepath.Join(root, "testdata", "amk_ir", file))
		require.NoError(t, err)
		h := sha256.New()
		_, err = io.Copy(h, bzip2.NewReader(f))
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprintf("%x", h.Sum(nil)), file)
		require.NoError(t, f.Close())
	}
}

// verdict says whether a program is accepted: by Flatten, which refuses what has no flat form, and by the proof.
func verdict(p *interchange.Program) diag.List {
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

// all calls f with the first programs of a class, or with all of them with AMKC_LONG.
func all(class string, most int, f func(Case)) {
	if os.Getenv("AMKC_LONG") != "" {
		most = NumPublished(class)
	}
	for n := range min(most, NumPublished(class)) {
		f(Published(class, uint64(n)))
	}
}

// expected are how many tasks, buffers and counters a lowering of AutoMegaKernel has, by the rules of its lowering: a
// projection of n rows has ceil(n/w) tiles, where w is the width that is asked for, or n/64 if that is more.
func expected(t *testing.T, p *interchange.Program) [3]int {
	var meta struct {
		Layers int             `json:"n_layers"`
		KVLen  int             `json:"kv_len"`
		Model  string          `json:"model"`
		Quant  json.RawMessage `json:"quant"`
	}
	require.NoError(t, json.Unmarshal(p.Meta, &meta))
	var config struct {
		Tiling struct {
			GEMV struct {
				Tile int `json:"N_tile"`
			} `json:"gemv"`
			Attention struct {
				Partitions int `json:"n_partitions"`
			} `json:"attention"`
		} `json:"tiling"`
	}
	require.NoError(t, json.Unmarshal(p.Config, &config))
	rows, inputs, tied := map[int]int{}, 0, true // rows by the output of a projection
	for i := range p.Tasks {
		if task := &p.Tasks[i]; task.Op == ir.GEMV || task.Op == ir.GEMM {
			rows[task.Outputs[0]] = p.Buffers[task.Inputs[1]].Shape[0]
			inputs = len(task.Inputs)
		}
	}
	for _, b := range p.Buffers {
		tied = tied && b.Name != "lm_head.weight"
	}
	tasks := 2 + 12*meta.Layers
	for _, n := range rows {
		width := min(config.Tiling.GEMV.Tile, n)
		if (n+width-1)/width > 64 {
			width = (n + 63) / 64
		}
		tasks += (n + width - 1) / width
	}
	require.Len(t, rows, 7*meta.Layers+1)
	buffers, counters := 9+28*meta.Layers, 3+19*meta.Layers
	if tied {
		buffers--
	}
	if inputs > 2 { // scales
		buffers += 7*meta.Layers + 1
	}
	if parts := min(8, config.Tiling.Attention.Partitions, (meta.KVLen+15)/16); parts > 1 {
		tasks, buffers, counters = tasks+parts*meta.Layers, buffers+parts*meta.Layers, counters+parts*meta.Layers
	}
	return [3]int{tasks, buffers, counters}
}

func TestLoweringsAreAccepted(t *testing.T) {
	names, programs := map[string]bool{}, map[string]bool{}
	ops, layers := map[ir.Opcode]bool{}, map[int]bool{}
	all(Lowering, 360, func(c Case) {
		distinct(t, names, c)
		require.Nil(t, c.Flat)
		require.Nil(t, c.Program)
		require.Empty(t, verdict(c.Profile), c.Name)
		p := c.Profile
		require.Equal(t, expected(t, p), [3]int{len(p.Tasks), len(p.Buffers), len(p.Counters)}, c.Name)
		text := p.Marshal()
		programs[string(text)] = true
		if len(names)%12 == 0 || os.Getenv("AMKC_LONG") != "" { // the rest differs in numbers
			again, diags := interchange.Parse(text, c.Name)
			require.Empty(t, diags)
			require.Equal(t, string(text), string(again.Marshal()))
		}
		var meta struct {
			Layers int `json:"n_layers"`
		}
		require.NoError(t, json.Unmarshal(p.Meta, &meta))
		layers[meta.Layers] = true
		for i := range p.Tasks {
			ops[p.Tasks[i].Op] = true
		}
	})
	require.Len(t, names, 360)
	require.Len(t, programs, 360)
	require.Equal(t, map[int]bool{1: true, 2: true, 3: true, 4: true, 12: true}, layers)
	require.True(t, ops[ir.GEMM] && ops[ir.GEMV] && ops[ir.AttentionCombine])
}

func TestModels(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	models := Models()
	require.Len(t, models, 2)
	for name, p := range models {
		require.Equal(t, expected(t, p), [3]int{len(p.Tasks), len(p.Buffers), len(p.Counters)}, name)
		require.Empty(t, verdict(p), name)
	}
}

func TestMutants(t *testing.T) {
	names := map[string]bool{}
	for _, class := range MutantClasses {
		require.Equal(t, 350, NumPublished(class), class)
		all(class, 350, func(c Case) { distinct(t, names, c) })
	}
	require.Equal(t, 1040, NumPublished(ProfileMutant))
	require.Equal(t, 260, NumPublished(ProfileOperand))
	for _, class := range []string{ProfileMutant, ProfileOperand} {
		all(class, 2000, func(c Case) { distinct(t, names, c) })
	}
	require.Len(t, names, 2800+1040+260)
}

func TestMutantsDifferFromTheirBase(t *testing.T) {
	classes, byName := population()
	for _, class := range append([]string{ProfileMutant, ProfileOperand}, MutantClasses...) {
		for n, p := range classes[class][:draws(25)] {
			base := byName[p.Base].program(byName)
			before := string(base.Marshal())
			c := Published(class, uint64(n))
			require.NotEqual(t, before, string(c.Profile.Marshal()), c.Name)
			require.Equal(t, before, string(base.Marshal()), "%s changed its base", c.Name)
		}
	}
}

// TestMutantsAreRejected: most classes have no safe member. In one that has some, a wait that is dropped may be
// implied. AMKC_LONG asks for all mutants of the published population, and else it is the first of each class.
func TestMutantsAreRejected(t *testing.T) {
	accepted, dropped := map[string]int{}, 0
	for _, class := range MutantClasses {
		all(class, 60, func(c Case) {
			if class == "drop_wait" {
				dropped++
			}
			if !sharedMemory(c.Profile) && len(verdict(c.Profile)) == 0 {
				accepted[class]++
			}
		})
	}
	require.Positive(t, accepted["drop_wait"])
	require.Less(t, accepted["drop_wait"], dropped/2)
	delete(accepted, "drop_wait")
	require.Empty(t, accepted)
}

// sharedMemory reports whether a mutant is wrong in that no SM of its target has the shared memory that it asks for.
// The proof of a Flat knows no target, and cannot see it.
func sharedMemory(p *interchange.Program) bool {
	return p.Pages != nil && p.Pages.Pages[0].Space == ir.SMEM
}

// Operands of a lowering that are changed break some programs and not others.
func TestProfileOperands(t *testing.T) {
	accepted, misfits := 0, 0
	all(ProfileOperand, 260, func(c Case) {
		flat, _ := c.Profile.Flatten()
		switch {
		case flat == nil:
		case validate.Flat(flat).OK:
			accepted++
		default:
			for _, d := range validate.Flat(flat).Diags.Errors() {
				if d.Code == validate.CodeShapes.ID {
					misfits++
					break
				}
			}
		}
	})
	require.Greater(t, accepted, 40)
	require.Greater(t, misfits, 10)
}
