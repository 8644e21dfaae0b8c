package ir

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Groups count towards the budget in every variant, for each variant resolves their names separately.
func TestGroupsAreBudgeted(t *testing.T) {
	p := readPaired(t)
	members := make([]string, MaxBuffers-10)
	for i := range members {
		members[i] = "deep"
	}
	p.Groups = []Group{{Name: "g{i}", Members: members}}
	require.ErrorContains(t, Check(p).Err(),
		"variant v: error: with it the program has more than 131072 buffers, pages and counters [AMK3013]")
	var z size
	p = readPaired(t)
	z.entities(p, &p.Variants[0])
	flat, diags := Unroll(p, &p.Variants[0])
	require.NoError(t, diags.Err())
	require.Equal(t, len(flat.Buffers)+len(flat.Counters)+len(flat.Pages)+3+2, z.members)
}

// A list of members has the limit of all buffers together, in both forms.
func TestMembersOfAGroup(t *testing.T) {
	for n, refused := range map[int]bool{MaxBuffers: false, MaxBuffers + 1: true} {
		text := fmt.Sprintf("amk 2.0\ngroup g{i} for 0..%d of", n-1) + strings.Repeat(" b", n)
		json := `{"ir_version":"2.0","model":{},"buffers":[],"variants":[],"groups":[{"name":"g{i}","first":0,` +
			`"members":[` + strings.TrimSuffix(strings.Repeat(`"b",`, n), ",") + `]}]}`
		_, inText := ParseText([]byte(text), "f")
		_, inJSON := ParseJSON([]byte(json), "f")
		require.Equal(t, refused, inText.Err() != nil)
		require.Equal(t, refused, inJSON.Err() != nil)
		if refused {
			require.ErrorContains(t, inText, "more than 131072 members of a group")
			require.ErrorContains(t, inJSON, "members: more than 131072 elements")
		}
	}
}

// twoByTwo rewrites every loop of a program so that an iteration runs the body for two indices, and every weight of the
// loop's iterations so that it goes by a name of a group.
func twoByTwo(p *Program) {
	ahead := strings.NewReplacer("{i}", "{i+1}", "{i+1}", "{i+2}")
	for n := range p.Buffers {
		b := &p.Buffers[n]
		if b.Kind != Weight || b.Count == 0 {
			continue
		}
		g := Group{Name: "group of " + b.Name}
		for k := range b.Count {
			member, _ := Resolve(b.Name, b.Index(k))
			g.Members = append(g.Members, member)
		}
		p.Groups = append(p.Groups, g)
	}
	grouped := func(name string) string {
		for _, g := range p.Groups {
			if g.Name == "group of "+name {
				return g.Name
			}
		}
		return name
	}
	for v := range p.Variants {
		for _, node := range p.Variants[v].Body {
			loop, ok := node.(*Loop)
			if !ok {
				continue
			}
			loop.Count, loop.Step = loop.Count/2, 2
			for _, s := range loop.Body {
				next := *s
				next.Name, next.Signal = ahead.Replace(s.Name), ahead.Replace(s.Signal)
				next.Waits = nil
				for _, w := range s.Waits {
					next.Waits = append(next.Waits, Wait{ahead.Replace(w.Counter), w.Threshold})
				}
				next.Dist.Rot = (s.Dist.Rot + s.Dist.Step) % max(1, s.Dist.SMs)
				next.Ops = nil
				for k := range s.Ops {
					o := &s.Ops[k]
					c := *o
					c.In, c.Out = nil, nil
					for i := range o.In {
						o.In[i].Buf = grouped(o.In[i].Buf)
						c.In = append(c.In, Operand{ahead.Replace(o.In[i].Buf), o.In[i].Dims})
					}
					for _, out := range o.Out {
						c.Out = append(c.Out, Operand{ahead.Replace(out.Buf), out.Dims})
					}
					next.Ops = append(next.Ops, c)
				}
				loop.Body = append(loop.Body, &next)
			}
		}
	}
}

// A loop by two over bodies for two layers, its weights in groups, unrolls to what the loop over layers unrolls to.
func TestLoopByTwoUnrollsToTheSame(t *testing.T) {
	want, _ := tiny(t)
	p, _ := tiny(t)
	twoByTwo(p)
	require.Empty(t, Check(p))
	require.Len(t, p.Groups, 6)
	read, diags := ParseText(Print(p), "f")
	require.NoError(t, diags.Err())
	for v := range want.Variants {
		x, diags := Unroll(want, &want.Variants[v])
		require.NoError(t, diags.Err())
		y, diags := Unroll(read, &read.Variants[v])
		require.NoError(t, diags.Err())
		require.Equal(t, x.Buffers, y.Buffers)
		require.Equal(t, x.Counters, y.Counters)
		require.Len(t, y.Tasks, len(x.Tasks))
		for i := range x.Tasks {
			a, b := &x.Tasks[i], &y.Tasks[i]
			require.Equal(t, []any{a.Name, a.SM, a.Waits, a.Signal}, []any{b.Name, b.SM, b.Waits, b.Signal})
			require.Equal(t, a.Footprint(nil), b.Footprint(nil), a.Name)
			for k := range a.Ops {
				require.Equal(t, []any{a.Ops[k].Code, a.Ops[k].Params}, []any{b.Ops[k].Code, b.Ops[k].Params})
			}
		}
	}
}
