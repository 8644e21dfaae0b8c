package host

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"amkc/runtime/driver"
	"amkc/runtime/shape"
)

// abi is the number that generated code, the device runtime and this package must agree on: AMK_RUNTIME_ABI.
const abi = 11

// Names in the fatbin.
const (
	infoName    = "amk_info"
	decodeName  = "amk_decode"
	ceilingName = "amk_ceiling"
	traceName   = "amk_trace"
)

// maxVariants is the length of Info's list on the device.
const maxVariants = 8

// Info is the constant amk_info of a fatbin: what the kernels in it were compiled for (amk/info.cuh). Sizes are bytes.
type Info struct {
	SMs              int // blocks of a launch
	Threads          int // per block
	SharedBytes      int // dynamic, per block
	ExchangeBytes    int
	ExchangesPerStep int
	TraceStride      int // floats
	Vocab            int
	MaxSeq           int
	Layers           int
	Hidden           int
	ElementBytes     int
	Flagged          bool
	WeightBytes      int64
	CacheBytes       int64
	VariantEnds      []int  // first position past each variant, ascending; the last is MaxSeq
	Model            uint32 // digest of model_config.h: what all kernels of a build have in common
	Fragments        bool   // cache blocks are in fragment order, in the kernel as it was compiled
	shape.Pass              // that a step decodes; the positions of its rows are all of one variant
}

// infoSize is sizeof(amk::Info).
const infoSize = 14*4 + 2*8 + maxVariants*4 + 4*4

// decodeInfo reads the bytes of an amk::Info and refuses contents that no build has.
func decodeInfo(raw []byte) (Info, error) {
	if len(raw) < 4 {
		return Info{}, fmt.Errorf("%s has %d bytes", infoName, len(raw))
	}
	le := binary.LittleEndian
	if v := le.Uint32(raw); v != abi {
		return Info{}, fmt.Errorf("its runtime ABI is %d, and this program speaks %d", v, abi)
	}
	if len(raw) != infoSize {
		return Info{}, fmt.Errorf("%s has %d bytes, and %d are expected", infoName, len(raw), infoSize)
	}
	word := func(i int) int { return int(le.Uint32(raw[4*i:])) }
	i := Info{
		SMs: word(1), Threads: word(2), SharedBytes: word(3), ExchangeBytes: word(4), ExchangesPerStep: word(5),
		TraceStride: word(6), Vocab: word(7), MaxSeq: word(8), Layers: word(9), Hidden: word(10),
		ElementBytes: word(11),
		Flagged:      word(13) != 0, WeightBytes: int64(le.Uint64(raw[56:])), CacheBytes: int64(le.Uint64(raw[64:])),
		Model: uint32(word(20 + maxVariants)), Fragments: word(21+maxVariants) != 0,
	}
	tokens, sequences := word(18+maxVariants), word(19+maxVariants)
	if sequences < 1 || tokens%sequences != 0 {
		return Info{}, fmt.Errorf("%s has %d tokens of %d sequences", infoName, tokens, sequences)
	}
	i.Pass = shape.PassOf(sequences, tokens/sequences)
	variants := word(12)
	if variants < 1 || variants > maxVariants {
		return Info{}, fmt.Errorf("%s names %d variants, and 1 to %d are possible", infoName, variants, maxVariants)
	}
	last := 0
	for v := range variants {
		end := word(18 + v)
		if end <= last {
			return Info{}, fmt.Errorf("%s: variant %d ends at position %d, and the one before it at %d", infoName, v,
				end, last)
		}
		last = end
		i.VariantEnds = append(i.VariantEnds, end)
	}
	if last != i.MaxSeq {
		return Info{}, fmt.Errorf("%s: the variants end at position %d of %d", infoName, last, i.MaxSeq)
	}
	sizes := []int{i.SMs, i.Threads, i.ExchangeBytes, i.Vocab, i.MaxSeq, i.Layers, i.ElementBytes, tokens}
	if slices.Min(sizes) <= 0 || i.WeightBytes <= 0 || i.CacheBytes <= 0 {
		return Info{}, fmt.Errorf("%s holds a size of 0", infoName)
	}
	return i, nil
}

// variant returns the index of the variant that decodes a position, which is below MaxSeq.
func (i *Info) variant(position int) int {
	v := 0
	for position >= i.VariantEnds[v] {
		v++
	}
	return v
}

// readInfo fetches the constant from a loaded module.
func readInfo(d *driver.Device, m *driver.Module) (Info, error) {
	p, n, err := m.Global(infoName)
	if err != nil {
		return Info{}, err
	}
	raw := make([]byte, n)
	if err := d.CopyDtoH(raw, p, nil); err != nil {
		return Info{}, err
	}
	return decodeInfo(raw)
}

// mismatch says how the fatbin contradicts the manifest; empty when it does not.
func (i *Info) mismatch(f *Facts, pass shape.Pass) string {
	for _, c := range []struct {
		name      string
		got, want int
	}{
		{"SMs", i.SMs, f.Target.SMs}, {"vocab", i.Vocab, f.Model.Vocab}, {"max_seq", i.MaxSeq, f.Model.MaxSeq},
		{"layers", i.Layers, f.Model.Layers}, {"hidden", i.Hidden, f.Model.Hidden},
		{"bytes per element", i.ElementBytes, elementBytes(f.Model.DType)},
		{"rows of a pass", i.NumRows(), pass.NumRows()}, {"sequences", i.NumSequences(), pass.NumSequences()},
	} {
		if c.got != c.want {
			return fmt.Sprintf("compiled for %s %d, and the manifest says %d", c.name, c.got, c.want)
		}
	}
	return ""
}

// checkArch refuses a device for which the target's code cannot run. It needs no fatbin, so it comes first; whether the
// fatbin really holds code for the device is for the driver to say.
func checkArch(t Target, d driver.Facts) error {
	digits, specific := strings.CutSuffix(strings.TrimPrefix(t.Arch, "sm_"), "a")
	cc, err := strconv.Atoi(digits)
	if err != nil {
		return fmt.Errorf("target architecture %q: sm_NN is expected", t.Arch)
	}
	have := 10*d.Major + d.Minor
	if have == cc || have > cc && !specific {
		return nil
	}
	return &DeviceError{Device: deviceName(d),
		What:   fmt.Sprintf("compiled for %s, and this device is %s", t.Arch, d.Arch()),
		Remedy: remedyFor(d)}
}

// checkShape refuses a device on which the blocks of a launch cannot all run at once: the kernel's SMs wait for one
// another.
func checkShape(i Info, d driver.Facts) error {
	what := ""
	switch {
	case !d.CooperativeLaunch:
		what = "it cannot launch cooperative kernels, and this build is one"
	case d.SMs < i.SMs:
		what = fmt.Sprintf("compiled for %d SMs, this device has %d", i.SMs, d.SMs)
	case d.SharedPerBlock < i.SharedBytes:
		what = fmt.Sprintf("compiled for %s of shared memory a block, this device has %s",
			FormatBytes(uint64(i.SharedBytes)), FormatBytes(uint64(d.SharedPerBlock)))
	case d.MaxThreads < i.Threads:
		what = fmt.Sprintf("compiled for %d threads a block, this device has %d", i.Threads, d.MaxThreads)
	default:
		return nil
	}
	return &DeviceError{Device: deviceName(d), What: what, Remedy: remedyFor(d)}
}

// checkOccupancy refuses a kernel of which no block fits an SM, whatever the device's limits say.
func checkOccupancy(f *driver.Function, i Info, d driver.Facts) error {
	n, err := f.Occupancy(i.Threads, i.SharedBytes)
	if err != nil {
		return err
	}
	if n < 1 {
		return &DeviceError{Device: deviceName(d),
			What: fmt.Sprintf("a block of kernel %s with %d threads and %s of shared memory "+
				"does not fit an SM", f.Name, i.Threads, FormatBytes(uint64(i.SharedBytes))), Remedy: remedyFor(d)}
	}
	return nil
}

func deviceName(d driver.Facts) string { return fmt.Sprintf("GPU %d (%s)", d.Ordinal, d.Name) }

func remedyFor(d driver.Facts) string {
	return fmt.Sprintf("recompile with --target %s --num-sms %d (or --target auto on this machine), or choose "+
		"another GPU with --gpu",
		d.Arch(), d.SMs)
}
