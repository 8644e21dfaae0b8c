package checkpoint

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"amkc/ir/diag"
)

// openAdapters opens the adapters that are to be merged, in order.
func openAdapters(dirs []string) (out []*adapter, err *diag.Diagnostic) {
	for _, dir := range dirs {
		a, err := openAdapter(dir)
		if err != nil {
			closeAdapters(out)
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func closeAdapters(all []*adapter) {
	for _, a := range all {
		a.file.region.close()
	}
}

// Stored returns all tensors of the model as they are in its files, sorted by name: without what adapters change.
func (c *Checkpoint) Stored() []Tensor {
	if c.stored != nil {
		return slices.Clone(c.stored)
	}
	return c.Tensors()
}

// Merge applies the adapters that the checkpoint was opened with, in order, and returns the tensors that they change.
// These are F32 then. transposed has the matrices that are stored with a row for each input. Merging twice is merging
// once. Errors: AMK1039 for adapters that do not fit the model, AMK1041 for matrices that are quantised.
func (c *Checkpoint) Merge(transposed map[string]bool) (changed []string, err error) {
	if c.stored == nil && len(c.adapters) > 0 {
		c.stored, c.changed = c.Tensors(), map[string]bool{}
		of := &recent{}
		for _, a := range c.adapters {
			if err := c.merge(a, transposed, of); err != nil {
				c.tensors, c.stored = c.stored, nil // so that merging again fails again
				return nil, err
			}
		}
	}
	return slices.Sorted(maps.Keys(c.changed)), nil
}

// A module is what an adapter has for a module of the model.
type module struct {
	a, b, bias, magnitude *Tensor
	embedding             bool
}

// part splits the name of an adapter's tensor into the module and what it is of it.
var adapterPart = regexp.MustCompile(
	`^(.+?)\.(lora_A\.weight|lora_B\.weight|lora_B\.bias|lora_embedding_A|lora_embedding_B|` +
		`lora_magnitude_vector(?:\.weight)?)$`)

const adapterPrefix = "base_model.model."

func (c *Checkpoint) merge(a *adapter, transposed map[string]bool, of *recent) *diag.Diagnostic {
	modules, whole := map[string]*module{}, map[string]Tensor{}
	for _, t := range a.file.Tensors() {
		name, ok := strings.CutPrefix(t.Name, adapterPrefix)
		switch {
		case !ok:
			return a.misfit(t.Name, "has another name than PEFT gives, which begins with %s", adapterPrefix)
		case !t.HasValues():
			return a.misfit(t.Name, "is stored as %.20q; accepted: F32, F16, BF16", string(t.DType))
		}
		m := adapterPart.FindStringSubmatch(name)
		if m == nil {
			if strings.Contains(name, "lora_") {
				return a.misfit(t.Name, "is no tensor of a LoRA that amkc knows")
			}
			whole[strings.Replace(name, ".base_layer.", ".", 1)] = t
			continue
		}
		of := modules[m[1]]
		if of == nil {
			of = &module{}
			modules[m[1]] = of
		}
		place := map[string]**Tensor{"lora_A.weight": &of.a, "lora_embedding_A": &of.a, "lora_B.weight": &of.b,
			"lora_embedding_B": &of.b, "lora_B.bias": &of.bias}[m[2]]
		if place == nil {
			place = &of.magnitude
		}
		if *place != nil {
			return a.misfit(t.Name, "is stored under two names; want one of them")
		}
		*place, of.embedding = &t, of.embedding || strings.HasPrefix(m[2], "lora_embedding")
	}
	if err := c.checkListed(a, modules, whole); err != nil {
		return err
	}
	done := map[string]bool{}
	replace := func(t Tensor) { // whose name has been found
		i, _ := slices.BinarySearchFunc(c.tensors, t.Name,
			func(t Tensor, name string) int { return strings.Compare(t.Name, name) })
		c.tensors[i], done[t.Name], c.changed[t.Name] = t, true, true
	}
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		t := whole[name]
		old, err := c.target(a, t.Name, name, done)
		if err != nil {
			return err
		}
		if !slices.Equal(old.Shape, t.Shape) {
			return a.misfit(t.Name, "has shape %v, and %s of the model has %v", t.Shape, old.Name, old.Shape)
		}
		t.Name = old.Name
		replace(t)
	}
	clear(done) // products may be added to what has been replaced
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if err := c.addModule(a, name, modules[name], transposed, done, of, replace); err != nil {
			return err
		}
	}
	return nil
}

func (a *adapter) misfit(tensor, format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(NotFitting, tensorPos(filepath.Join(a.dir, adapterTensors), tensor), format, args...)
}

// checkListed holds the modules that the configuration lists against those that the adapter has tensors of.
func (c *Checkpoint) checkListed(a *adapter, modules map[string]*module, whole map[string]Tensor) *diag.Diagnostic {
	if len(modules) == 0 && len(whole) == 0 {
		return diag.Errorf(NotFitting, filepath.Join(a.dir, adapterTensors), "there is no tensor in it")
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if a.targets != nil && !isNamed(name, a.targets) {
			return a.misfit(adapterPrefix+name, "is of a module that target_modules does not list, so that PEFT would "+
				"leave it out; accepted: tensors of those that it lists")
		}
	}
	names := slices.Collect(maps.Keys(modules))
	for name := range whole {
		names = append(names, name[:max(0, strings.LastIndex(name, "."))])
	}
	stored := func(listed string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return isNamed(name, []string{listed}) })
	}
	for _, listed := range slices.Concat(a.targets, a.whole) {
		if stored(listed) {
			continue
		}
		weight := []string{listed + ".weight"}
		if slices.ContainsFunc(c.tensors, func(t Tensor) bool { return isNamed(t.Name, weight) }) {
			return diag.Errorf(NotFitting, filepath.Join(a.dir, adapterTensors), "has no tensor of %.60q, which %s "+
				"lists and the model has; save the adapter again", listed, adapterConfig)
		}
	}
	return nil
}

// target finds the tensor of the model that the adapter calls name. Modules of transformers and tensors of checkpoints
// differ in what their names begin with. Errors: AMK1039, AMK1041.
func (c *Checkpoint) target(a *adapter, pos, name string, done map[string]bool) (Tensor, *diag.Diagnostic) {
	names := []string{name}
	if rest, ok := strings.CutPrefix(name, "model.language_model."); ok {
		names = append(names, "language_model.model."+rest, "model."+rest)
	}
	if _, rest, ok := strings.Cut(name, "."); ok && strings.Count(rest, ".") > 0 {
		names = append(names, rest)
	}
	for _, as := range names {
		t, ok := c.Tensor(as)
		if !ok {
			var found []Tensor
			for _, t := range c.tensors {
				if strings.HasSuffix(t.Name, "."+as) {
					found = append(found, t)
				}
			}
			if len(found) != 1 || as != name {
				continue
			}
			t = found[0]
		}
		switch {
		case done[t.Name]:
			return t, a.misfit(pos, "changes %s, which another tensor of this adapter changes too", t.Name)
		case t.InBlocks() || !t.HasValues():
			return t, a.quantised(pos, t.Name, string(t.DType))
		}
		return t, nil
	}
	if module, ok := strings.CutSuffix(name, ".weight"); ok {
		for _, t := range c.tensors {
			if rest, ok := strings.CutPrefix(t.Name, module+"."); ok && rest != "bias" && !strings.Contains(rest, ".") {
				return t, a.quantised(pos, module, "in "+rest)
			}
		}
	}
	return Tensor{}, a.misfit(pos, "changes %s, and the model has no such tensor; want an adapter of this model", name)
}

func (a *adapter) quantised(pos, name, how string) *diag.Diagnostic {
	return diag.Errorf(codeAdapterQuantised, tensorPos(filepath.Join(a.dir, adapterTensors), pos),
		"changes %s, which the model stores quantised (%.30s): the sum would have to be quantised once more; give the "+
			"model in F32, F16 or BF16, and --weights to quantise the sum", name, how)
}

// addModule adds the product of a module to its matrix, and its bias to that of the module.
func (c *Checkpoint) addModule(a *adapter, name string, m *module, transposed map[string]bool, done map[string]bool,
	of *recent, replace func(Tensor)) *diag.Diagnostic {
	pos := adapterPrefix + name
	switch {
	case m.a == nil || m.b == nil:
		return a.misfit(pos, "has lora_A or lora_B alone; want both")
	case a.dora != (m.magnitude != nil):
		return a.misfit(pos, "has a lora_magnitude_vector: %v, and use_dora is %v; want both or neither",
			m.magnitude != nil, a.dora)
	case m.bias != nil && m.embedding:
		return a.misfit(pos, "has a bias of an embedding, which none has")
	}
	w, err := c.target(a, pos, name+".weight", done)
	if err != nil {
		return err
	}
	rank := a.rankOf(name)
	inRows := m.embedding || transposed[w.Name]
	if len(w.Shape) != 2 {
		return a.misfit(pos, "changes %s of %v; accepted: matrices", w.Name, w.Shape)
	}
	out, in := w.Shape[0], w.Shape[1]
	if inRows {
		out, in = in, out
	}
	want := [2][]int{{rank, in}, {out, rank}} // of A and B
	if !slices.Equal(m.a.Shape, want[0]) || !slices.Equal(m.b.Shape, want[1]) {
		return a.misfit(pos, "has lora_A of %v and lora_B of %v; the rank %d and %s of %v make them %v and %v",
			m.a.Shape, m.b.Shape, rank, w.Name, w.Shape, want[0], want[1])
	}
	if m.magnitude != nil && !slices.Equal(m.magnitude.Shape, want[1][:1]) {
		return a.misfit(pos, "has lora_magnitude_vector of %v; want %v", m.magnitude.Shape, want[1][:1])
	}
	replace(c.lora(w, &lora{a: *m.a, b: *m.b, rank: rank, transposed: inRows, scale: a.scaleOf(name),
		magnitude: m.magnitude}, of))
	if m.bias == nil {
		return nil
	}
	b, err := c.target(a, pos, name+".bias", done)
	if err != nil {
		return err
	}
	if !slices.Equal(m.bias.Shape, want[1][:1]) || !slices.Equal(b.Shape, want[1][:1]) {
		return a.misfit(pos, "has lora_B.bias of %v, and %s is %v; want %v", m.bias.Shape, b.Name, b.Shape, want[1][:1])
	}
	replace(c.lora(b, &lora{b: *m.bias, rank: 1, scale: a.scaleOf(name)}, of))
	return nil
}

// lora is a tensor with what an adapter adds to it.
func (c *Checkpoint) lora(t Tensor, l *lora, of *recent) Tensor {
	l.from, l.base, l.cols, l.loaded = t, t, t.RowLen(), &factors{of: of}
	if before, ok := t.data.(*lora); ok {
		l.base = before.base
	}
	n := int64(t.Rows()) * int64(t.RowLen())
	return Tensor{Name: t.Name, DType: F32, Shape: t.Shape, size: 4 * n, data: l}
}
