package host

import (
	"errors"
	"fmt"
	"slices"

	"amkc/runtime/driver"
)

// A build for several GPUs runs one kernel on each of them, as ranks that push words into each other's memory. A
// session holds on every GPU what it holds on one: the same allocations, in the same order. Addresses are those of the
// first, and what is written through the session is written on all; what a rank has for itself, its weights and rows
// of the cache, is at the same address of another GPU. Results are read from the first, which has all but the logits of
// the others.

// A gpu runs the kernel of one rank.
type gpu struct {
	dev    *driver.Device
	stream *driver.Stream
}

// An allocation is memory of the same size on each GPU.
type allocation struct {
	at    []driver.Ptr // by rank
	bytes int
}

// modules are code that is loaded on each GPU, and functions one of its functions, by rank.
type (
	modules   []*driver.Module
	functions []*driver.Function
)

// openGPUs opens the GPUs of all ranks, which begin with the given one, and lets each reach the memory of the others.
func (s *Session) openGPUs(first int) error {
	n := s.facts.NumRanks()
	if n > 1 {
		if have, err := driver.Count(); err != nil {
			return err
		} else if have < first+n {
			remedy := fmt.Sprintf("recompile with --gpus %d or fewer, or use a machine that has them", max(1, have))
			if have >= n {
				remedy = fmt.Sprintf("begin with GPU %d at most", have-n)
			}
			return &DeviceError{Device: fmt.Sprintf("GPU %d", first), Remedy: remedy,
				What: fmt.Sprintf("compiled for %d GPUs, and there are %d from it on", n, max(0, have-first))}
		}
	}
	for i := range n {
		dev, err := driver.Open(first + i)
		if err != nil {
			return err
		}
		s.gpus = append(s.gpus, gpu{dev: dev})
		if err := checkArch(s.facts.Target, dev.Facts()); err != nil {
			return err
		}
		if of, is := s.gpus[0].dev.Facts(), dev.Facts(); of.Arch() != is.Arch() || of.SMs != is.SMs {
			return &DeviceError{Device: deviceName(is),
				What: fmt.Sprintf("it is %s with %d SMs, and %s is %s with %d: the GPUs of a build are alike",
					is.Arch(), is.SMs, deviceName(of), of.Arch(), of.SMs),
				Remedy: "choose others with CUDA_VISIBLE_DEVICES"}
		}
	}
	s.gpu = s.gpus[0]
	for i := range s.gpus {
		for k := range s.gpus {
			if i == k {
				continue
			}
			if err := s.gpus[i].dev.EnablePeer(s.gpus[k].dev); err != nil {
				return err
			}
		}
	}
	return nil
}

// openStreams makes a stream on each.
func (s *Session) openStreams() (err error) {
	for i := range s.gpus {
		if s.gpus[i].stream, err = s.gpus[i].dev.NewStream(); err != nil {
			return err
		}
	}
	s.gpu = s.gpus[0]
	return nil
}

// closeGPUs closes them.
func (s *Session) closeGPUs() []error {
	var errs []error
	for i := range s.gpus {
		if s.gpus[i].stream != nil {
			errs = append(errs, s.gpus[i].stream.Close())
		}
	}
	for i := range s.gpus {
		errs = append(errs, s.gpus[i].dev.Close())
	}
	return errs
}

// alloc takes memory on each GPU.
func (s *Session) alloc(bytes int) (driver.Ptr, error) {
	a := allocation{bytes: bytes}
	for i := range s.gpus {
		p, err := s.gpus[i].dev.Alloc(bytes)
		if err != nil {
			return 0, errors.Join(err, s.freeAll(a))
		}
		a.at = append(a.at, p)
	}
	s.allocated = append(s.allocated, a)
	return a.at[0], nil
}

// free gives memory back that alloc has taken; 0 is none.
func (s *Session) free(p driver.Ptr) error {
	i := slices.IndexFunc(s.allocated, func(a allocation) bool { return a.at[0] == p })
	if p == 0 || i < 0 {
		return nil
	}
	a := s.allocated[i]
	s.allocated = slices.Delete(s.allocated, i, i+1)
	return s.freeAll(a)
}

func (s *Session) freeAll(a allocation) error {
	var errs []error
	for i, p := range a.at {
		errs = append(errs, s.gpus[i].dev.Free(p))
	}
	return errors.Join(errs...)
}

// on is an address as another rank has it: in the same allocation at the same place, or of memory that all share.
func (s *Session) on(rank int, p driver.Ptr) driver.Ptr {
	for i := range s.allocated {
		if a := &s.allocated[i]; rank > 0 && p >= a.at[0] && p < a.at[0]+driver.Ptr(a.bytes) {
			return a.at[rank] + p - a.at[0]
		}
	}
	return p
}

// put writes bytes on each GPU.
func (s *Session) put(p driver.Ptr, bytes []byte) error {
	for i := range s.gpus {
		if err := s.gpus[i].dev.CopyHtoD(s.on(i, p), bytes, nil); err != nil {
			return err
		}
	}
	return nil
}

// set sets n bytes on each GPU, in the order of its stream.
func (s *Session) set(p driver.Ptr, value byte, n int) error {
	for i := range s.gpus {
		if err := s.gpus[i].stream.MemsetD8(s.on(i, p), value, n); err != nil {
			return err
		}
	}
	return nil
}

// move copies n bytes of each GPU to another place on it.
func (s *Session) move(to, from driver.Ptr, n int) error {
	for i := range s.gpus {
		if err := s.gpus[i].stream.CopyDtoD(s.on(i, to), s.on(i, from), n); err != nil {
			return err
		}
	}
	return nil
}

// synchronize waits until all are idle.
func (s *Session) synchronize() error {
	var errs []error
	for i := range s.gpus {
		errs = append(errs, s.gpus[i].stream.Synchronize())
	}
	return errors.Join(errs...)
}

// loadModule puts an image on each GPU.
func (s *Session) loadModule(image []byte) (m modules, err error) {
	built := driver.Built{Targets: []string{s.facts.Target.Arch}, CUDA: s.facts.CUDA}
	for i := range s.gpus {
		module, err := s.gpus[i].dev.LoadFatbin(image, built)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m = append(m, module)
	}
	return m, nil
}

func (m modules) close() error {
	var errs []error
	for _, module := range m {
		errs = append(errs, module.Close())
	}
	return errors.Join(errs...)
}

// functions looks a function up.
func (m modules) functions(name string) (fs functions, err error) {
	for _, module := range m {
		f, err := module.Function(name)
		if err != nil {
			return nil, err
		}
		fs = append(fs, f)
	}
	return fs, nil
}

// A SeveralError says that a build for several GPUs does not do something.
type SeveralError struct {
	GPUs int
	What string
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%s is not done on %d GPUs yet; compile the model for one, or leave that out", e.What, e.GPUs)
}

// onlyOne refuses what builds for several GPUs do not do.
func (s *Session) onlyOne(what string) error {
	if n := len(s.gpus); n > 1 {
		return &SeveralError{GPUs: n, What: what}
	}
	return nil
}
