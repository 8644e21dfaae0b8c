package host

import (
	"errors"
	"io/fs"
	"path/filepath"

	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// A megakernel is one of the decode kernels of a build on the GPU: that of one token per step, or one of passes of
// several rows or sequences. They share weights, cache and everything else of a session, and each has exchange pages of
// its own.
type megakernel struct {
	info     Info
	stages   []string // labels of what stall records number
	module   modules
	decode   functions
	exchange driver.Ptr // pages, once memory is allocated

	variant    int    // that the exchange pages were last used by, or noVariant
	epoch      uint64 // steps since the exchange pages were cleared, from firstEpoch on
	firstEpoch uint64
}

// maxEpoch is the last epoch of exchange words; 1 comes after it (kMaxEpoch of amk/context.cuh).
const maxEpoch = 65535

// lateEpoch is a number of steps after which epochs come round in the next step or soon after. Counters, which hold
// 32 bits of numbers of steps, find none of it: it is a multiple of 2^32. That is 1 more than a multiple of maxEpoch,
// so that k times 2^32 steps of n exchanges are as far as k steps.
func lateEpoch(exchanges int) uint64 {
	late := maxEpoch - max(1, exchanges/2)
	if exchanges == 0 {
		return 0
	}
	return uint64(late/exchanges) << 32
}

// noVariant makes the next launch clear the exchange pages.
const noVariant = -1

// readFatbin reads compiled kernels; file is their path in the build.
func readFatbin(dir, file string) ([]byte, error) {
	path := filepath.Join(dir, file)
	image, err := infile.Read(path, infile.Module)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &BuildError{Path: path, What: "the compiled kernel is missing",
			Remedy: "build it: run make in " + dir}
	case err != nil:
		return nil, &BuildError{Path: path, What: "the compiled kernel cannot be read", Err: err}
	}
	return image, nil
}

// loadMegakernel puts a kernel on the device and checks that it is the manifest's and fits.
func (s *Session) loadMegakernel(image []byte, file string, pass PassFacts) (_ *megakernel, err error) {
	k, path := &megakernel{stages: pass.Stages, variant: noVariant}, filepath.Join(s.dir, file)
	defer func() {
		if err != nil && k.module != nil {
			err = errors.Join(err, k.module.close())
		}
	}()
	if k.module, err = s.loadModule(image); err != nil {
		return nil, err
	}
	if k.info, err = readInfo(s.dev, k.module[0]); err != nil {
		return nil, &BuildError{Path: path, What: "not a kernel that this program can run",
			Remedy: "compile the model again, and use the launcher of the same build", Err: err}
	}
	what := k.info.mismatch(s.facts, pass.Pass)
	if what == "" && pass.NumTokens() > 1 {
		what = k.info.otherThan(&s.one.info)
	}
	if what != "" {
		return nil, &BuildError{Path: path, What: what, Remedy: "it belongs to another build: run make again"}
	}
	if err := checkShape(k.info, s.dev.Facts()); err != nil {
		return nil, err
	}
	if s.lateEpochs {
		k.firstEpoch = lateEpoch(k.info.ExchangesPerStep)
	}
	k.decode, err = s.function(k, k.module, file, decodeName)
	return k, err
}

// otherThan says how a kernel contradicts that of one token; empty when it does not. All that is in model_config.h is
// the same, so that kernels find weights and rows of the cache in the same places and change variants at the same
// positions; and so is the layout of the cache, which follows from flags of nvcc too.
func (i *Info) otherThan(one *Info) string {
	switch {
	case i.WeightBytes != one.WeightBytes || i.CacheBytes != one.CacheBytes:
		return "its weights and cache have other sizes than those of " + FatbinFile
	case i.SMs != one.SMs:
		return "it runs on other SMs than " + FatbinFile
	case len(i.VariantEnds) != len(one.VariantEnds):
		return "it has other variants than " + FatbinFile
	}
	for v, end := range i.VariantEnds {
		if end != one.VariantEnds[v] {
			return "its variants end at other positions than those of " + FatbinFile
		}
	}
	switch {
	case i.Fragments != one.Fragments:
		return "rows of its cache are laid out otherwise than those of " + FatbinFile
	case i.Model != one.Model:
		return "it was compiled with another model_config.h than " + FatbinFile
	}
	return ""
}

// function looks a function up in a kernel's module, or another of the same shape, and makes it ready to be launched.
func (s *Session) function(k *megakernel, m modules, file, name string) (functions, error) {
	all, err := m.functions(name)
	if err != nil {
		return nil, &BuildError{Path: filepath.Join(s.dir, file), What: "not a kernel of amkc",
			Remedy: "run make again", Err: err}
	}
	for i, f := range all {
		if err := f.SetMaxDynamicShared(k.info.SharedBytes); err != nil {
			return nil, err
		}
		if err := checkOccupancy(f, k.info, s.gpus[i].dev.Facts()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// next returns the kernel that decodes the next of n known tokens, and how many of them a launch of it decodes: the
// smallest pass that takes all, or the largest there is, and single steps where none fits.
func (s *Session) next(n int, logits bool) (*megakernel, int) {
	for i, k := range s.passes {
		last := i+1 == len(s.passes) || s.passes[i+1].limit(s.position, n, logits) == 0
		if taken := k.limit(s.position, n, logits); n > 1 && taken > 0 && (k.info.NumRows() >= n || last) {
			return k, taken
		}
	}
	return s.one, s.one.limit(s.position, n, logits)
}

// limit returns how many of n tokens at a position one launch may decode, in steps of which all rows are of one
// variant: n, or fewer, or none.
func (k *megakernel) limit(position, n int, logits bool) int {
	rows := k.info.NumRows()
	end := k.info.VariantEnds[k.info.variant(position)]
	steps := min((n+rows-1)/rows, maxSteps, (end-position)/rows)
	if logits {
		steps = min(steps, maxSteps/rows)
	}
	return min(n, steps*rows)
}

// enter sets the epoch of a launch at a position. Words that another variant left in the exchange pages could be taken
// for data once epochs come round again, so the pages are cleared when the variant changes. Several GPUs push into
// pages of each other as soon as they are launched, so that none is before the pages of all are clear.
func (k *megakernel) enter(s *Session, p *launchParams) error {
	if v := k.info.variant(p.Position); v != k.variant {
		if err := s.set(k.exchange, 0, k.info.ExchangeBytes); err != nil {
			return err
		}
		if len(s.gpus) > 1 {
			if err := s.synchronize(); err != nil {
				return err
			}
		}
		k.variant, k.epoch = v, k.firstEpoch
	}
	p.Exchange, p.FirstEpoch = k.exchange, k.epoch
	return nil
}

// enqueue puts a launch of one of its functions on the streams of all GPUs. Launches that follow one another need no
// order among GPUs besides: a rank that begins the next one can end no exchange of it before all others have begun it
// too, and pages of the first exchange are those of one that all have read when they choose a token.
func (k *megakernel) enqueue(s *Session, f functions, p *launchParams) error {
	for i := range s.gpus {
		if err := s.gpus[i].stream.LaunchCooperative(f[i], driver.Dim{X: k.info.SMs}, driver.Dim{X: k.info.Threads},
			k.info.SharedBytes, p.encodeFor(s, i)); err != nil {
			return errors.Join(err, s.giveUp(i))
		}
	}
	return nil
}

// giveUp ends a launch that some GPUs wait in for another one, on which it could not be started.
func (s *Session) giveUp(launched int) error {
	if launched == 0 {
		return nil
	}
	s.mem.pinned.Store32(s.mem.abort, 1)
	err := s.synchronize()
	s.mem.pinned.Store32(s.mem.abort, 0)
	return errors.Join(err, s.recover())
}
