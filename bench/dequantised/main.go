// Command dequantised writes a checkpoint in 32 bits whose tensors have the values that a build of a model computes
// with:
//
//	dequantised MODEL DIR [--dtype fp32|fp16|bf16] [--weights SPEC]
//
// MODEL is quantised, or SPEC says how its matrices are stored; transformers then computes with the same weights as the
// kernel, without knowing a quantised format. It is for bench/results.py. Exit codes: 0 success; 1 the input is at
// fault; 2 bad usage.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/transform"
	"amkc/passes"
	"amkc/runtime/infile"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("dequantised", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dtype := flags.String("dtype", "fp32", "of what is not quantised")
	weights := flags.String("weights", "", "how matrices are stored")
	if len(args) < 2 || flags.Parse(args[2:]) != nil || flags.NArg() > 0 || dtypes[*dtype] == nil {
		fmt.Fprintln(stderr, "usage: dequantised MODEL DIR [--dtype fp32|fp16|bf16] [--weights SPEC]")
		return 2
	}
	if err := write(args[0], args[1], dtypes[*dtype], *weights); err != nil {
		fmt.Fprintln(stderr, "dequantised: error:", err)
		return 1
	}
	return 0
}

var dtypes = map[string]*ir.DType{"fp32": kept(ir.F32), "fp16": kept(ir.F16), "bf16": kept(ir.BF16)}

func kept(d ir.DType) *ir.DType { return &d }

// write writes model.safetensors, and config.json without what it says of a quantised format.
func write(model, dir string, dtype *ir.DType, spec string) error {
	var formats passes.WeightFormats
	if spec != "" {
		var err error
		if formats, err = passes.ParseWeightFormats(spec); err != nil {
			return err
		}
	}
	l, err := compiler.RunPasses(compiler.Options{Model: model, DType: dtype, Formats: formats,
		Target: ir.FindTarget("h200")})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeConfig(model, dir); err != nil {
		return err
	}
	return writeTensors(l, filepath.Join(dir, "model.safetensors"))
}

func writeConfig(model, dir string) error {
	text, err := infile.Read(filepath.Join(model, "config.json"), infile.ModelConfig)
	if err != nil {
		return err
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	delete(config, "quantization_config")
	delete(config, "compression_config")
	if text, err = json.MarshalIndent(config, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644)
}

// A tensor is one of the checkpoint, as a buffer of its own.
type tensor struct {
	key    string
	layer  int
	buffer ir.Buffer
}

// tensors are those that nodes of the graph take rows of. One that is taken in another orientation, as GPT-2's are, has
// no rows with groups of columns: there is no such model among those that results are made of.
func tensors(g *ir.Graph) ([]tensor, error) {
	var out []tensor
	seen := map[string]bool{}
	add := func(nodes []ir.GraphNode, layer int) error {
		for _, n := range nodes {
			for i := range n.Weights {
				for _, w := range n.Weights[i].Tensors() {
					key, err := ir.ResolveKey(w.Key, layer)
					switch {
					case err != nil:
						return err
					case slices.ContainsFunc(w.Chain, turns):
						return fmt.Errorf("%s is taken as %v; want tensors that rows are taken of", key, w)
					case seen[key]:
						continue
					}
					seen[key] = true
					shape := w.Shape
					if len(w.Chain) > 0 {
						shape = w.Stored
					}
					b := ir.Buffer{Name: key, Kind: ir.Weight, DType: g.Model.Weights, Shape: shape,
						Pieces: []ir.Piece{{Key: w.Key}}}
					switch storage := n.Weights[i].Storage; {
					case storage != nil:
						b.DType, b.Layout = storage.DType, storage.Layout()
					case len(shape) == 2:
						b.Layout = ir.Storage{DType: b.DType}.Layout()
					}
					out = append(out, tensor{key, layer, b})
				}
			}
		}
		return nil
	}
	err := add(g.Before, 0)
	for layer, kind := range g.Layers {
		if err == nil {
			err = add(g.Kinds[kind].Nodes, layer)
		}
	}
	if err == nil {
		err = add(g.After, 0)
	}
	return out, err
}

// turns reports whether rows that a transform makes are others than the tensor's.
func turns(t transform.Transform) bool { return t.Kind != transform.Rows }

func writeTensors(l *compiler.Scheduled, path string) error {
	all, err := tensors(l.Graph)
	if err != nil {
		return err
	}
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	header, at := map[string]entry{}, 0
	for i := range all {
		t := &all[i]
		bytes := 4 * t.buffer.Numel()
		header[t.key] = entry{"F32", t.buffer.Shape, [2]int{at, at + bytes}}
		at += bytes
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	out.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))) // errors come with Flush
	out.Write(text)
	for i := range all {
		values, err := l.Weights.Floats(&all[i].buffer, all[i].layer)
		if err != nil {
			return err
		}
		for _, v := range values {
			out.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}
