package compiler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"path/filepath"
	"strings"

	"amkc/codegen"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
	"amkc/runtime/progress"
)

// packedSpec declares one member of the weight arena as a tensor of weights.safetensors: its physical shape, padding
// included, so that the file is the arena. What has no whole units of alignment on its own is padded as a vector.
func packedSpec(b *ir.Buffer, name string) checkpoint.Spec {
	dtype, shape := b.Format().Tensor(b.Matrix())
	if bytes := b.Bytes(); bytes%ir.ArenaAlign != 0 {
		elements := 1
		for _, n := range shape {
			elements *= n
		}
		per := ir.ArenaAlign * elements / bytes
		shape = []int{(elements + per - 1) / per * per}
	}
	return checkpoint.Spec{Name: name, DType: checkpoint.DType(dtype), Shape: shape}
}

// packedFormat is what packed weights say of their bytes. Where the bytes of any format of matrices change, the number
// does, and that of weightsKey.
const packedFormat = "amkc packed 4"

// Pack calibrates the weights of a lowered program, if it has a calibration text, and writes them packed: one
// safetensors file whose data section is ir.PackedWeights. It returns the file's size and digest.
func Pack(ctx context.Context, l *Scheduled, path string, report progress.Func) (bytes int64, digest string,
	err error) {
	invented := l.invented()
	places, size := ir.PackedWeights(l.Program)
	var specs []checkpoint.Spec
	for _, pl := range places {
		if invented.Find(int64(pl.Offset)) == nil {
			specs = append(specs, packedSpec(&l.Program.Buffers[pl.Buffer], pl.Name))
		}
	}
	if err := checkSpace(path, uint64(int64(size)-invented.Bytes())); err != nil {
		return 0, "", err
	}
	if err := l.Calibrate(ctx, report); err != nil {
		return 0, "", err
	}
	w, err := checkpoint.NewWriter(path, specs, map[string]string{"format": packedFormat})
	if err != nil {
		return 0, "", err
	}
	defer w.Abort()
	for i, pl := range places {
		if err := ctx.Err(); err != nil {
			return 0, "", err
		}
		report.Report(progress.Step{Activity: "packing weights", Done: int64(pl.Offset), Total: int64(size),
			Unit: progress.Bytes})
		if invented.Find(int64(pl.Offset)) != nil {
			continue
		}
		next := size
		if i+1 < len(places) {
			next = places[i+1].Offset
		}
		out := &tensorWriter{w: w, name: pl.Name}
		own := l.Program.Buffers[pl.Buffer].OfRank(pl.Rank)
		if err := l.Weights.Pack(out, &own, pl.Index); err != nil {
			return 0, "", err
		}
		if pad := next - pl.Offset - out.written; pad > 0 {
			if _, err := out.Write(make([]byte, pad)); err != nil {
				return 0, "", err
			}
		}
	}
	if err := w.Close(); err != nil {
		return 0, "", err
	}
	return fileDigest(path, report)
}

// tensorWriter appends to one tensor of a Writer.
type tensorWriter struct {
	w       *checkpoint.Writer
	name    string
	written int
}

func (t *tensorWriter) Write(p []byte) (int, error) {
	t.written += len(p)
	return len(p), t.w.Append(t.name, p)
}

// fileDigest returns the size and SHA-256 of a file, and reports how far it is.
func fileDigest(path string, report progress.Func) (int64, string, error) {
	step := progress.Step{Activity: "reading " + filepath.Base(path), Unit: progress.Bytes}
	return infile.Digest(path, func(done, total int64) {
		step.Done, step.Total = done, total
		report.Report(step)
	})
}

// weightsKey digests everything that packed weights depend on: the arena with its layouts and pieces, and either the
// contents of the checkpoint or the seed of random ones, and the text to calibrate with. The checkpoint is read once.
func (l *Scheduled) weightsKey(seed *uint64, report progress.Func) (weightDigests, error) {
	if l.packed.key != "" {
		return l.packed, nil
	}
	h := sha256.New()
	places, size := ir.PackedWeights(l.Program)
	fmt.Fprintf(h, "amkc packed 6\n%d\n", size)
	for _, pl := range places {
		b := l.Program.Buffers[pl.Buffer].OfRank(pl.Rank)
		fmt.Fprintf(h, "%s %d %v %v %v %v\n", pl.Name, pl.Offset, b.DType, b.Shape, b.Layout, b.Pieces)
	}
	for k := range l.Graph.Kinds {
		for _, f := range l.Graph.RopeOf(k).InvFreq {
			fmt.Fprintf(h, "%x ", f)
		}
	}
	for _, reading := range l.Weights.Readings() {
		fmt.Fprintln(h, reading)
	}
	for _, window := range l.calibrationWindows() {
		fmt.Fprintln(h, "calibrated 1", window)
	}
	checkpoint := ""
	if seed != nil {
		fmt.Fprintf(h, "seed %d\n", *seed)
		if l.options.LeaveOut {
			fmt.Fprintln(h, "matrices left out 1")
		}
	} else {
		tensors := sha256.New()
		if err := hashTensors(tensors, l, report); err != nil {
			return weightDigests{}, err
		}
		checkpoint = hex.EncodeToString(tensors.Sum(nil))
		fmt.Fprintf(h, "checkpoint %s\n", checkpoint)
	}
	adapters, err := l.adapterDigests(report)
	if err != nil {
		return weightDigests{}, err
	}
	for _, a := range adapters {
		fmt.Fprintf(h, "adapter 1 %s %s\n", a.Config, a.Weights)
	}
	l.packed = weightDigests{key: hex.EncodeToString(h.Sum(nil)), checkpoint: checkpoint, adapters: adapters}
	return l.packed, nil
}

// weightDigests are SHA-256 of all that packed weights are made from, and of the checkpoint alone: empty where weights
// are invented. Those of adapters are not in the latter.
type weightDigests struct {
	key, checkpoint string
	adapters        []codegen.Adapter
}

// adapterDigests are those of the files of the adapters, in order.
func (l *Scheduled) adapterDigests(report progress.Func) ([]codegen.Adapter, error) {
	var out []codegen.Adapter
	for _, dir := range l.options.Adapters {
		id, revision := checkpoint.Origin(dir)
		a := codegen.Adapter{Name: printable.Clip(id), Revision: printable.Clip(revision)}
		for i, path := range checkpoint.AdapterFiles(dir) {
			_, digest, err := fileDigest(path, report)
			if err != nil {
				return nil, diag.Errorf(codeModelFile, path, "cannot be read: %v", infile.Reason(err))
			}
			*[]*string{&a.Config, &a.Weights}[i] = digest
		}
		out = append(out, a)
	}
	return out, nil
}

// hashTensors adds name, type, shape and bytes of every tensor of the checkpoint.
func hashTensors(h hash.Hash, l *Scheduled, report progress.Func) error {
	step := progress.Step{Activity: "reading weights", Unit: progress.Bytes}
	for _, t := range l.checkpoint.Stored() {
		step.Total += t.Size()
	}
	for _, t := range l.checkpoint.Stored() {
		fmt.Fprintf(h, "%s %s %v\n", t.Name, t.DType, t.Shape)
		if strings.HasSuffix(t.Name, "inv_freq") {
			continue // compared at import, not packed
		}
		raw, err := t.Raw()
		if err != nil {
			return err
		}
		h.Write(raw)
		step.Done += t.Size()
		report.Report(step)
	}
	return nil
}
