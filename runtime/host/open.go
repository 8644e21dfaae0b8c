package host

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// A Progress is told how much of a long activity is done; done reaches total. It runs on the caller's goroutine.
type Progress func(activity string, done, total int64)

// Options of [Open]. The zero value is GPU 0 and the defaults.
type Options struct {
	GPU      int
	Progress Progress // may be nil
	// a wait on the GPU longer than this is a stall; 0 means 5 s. Tools that slow kernels down need more
	SpinLimit time.Duration
	Reference ReferenceOpener // nil: the reference kernels of the build
}

const defaultSpinLimit = 5 * time.Second

// Open opens a build directory on a GPU: it checks that the build, the device and its free memory go together, and only
// then loads the weights and clears the cache. Errors are [BuildError], [DeviceError], [MemoryError], and those of
// package driver, of which [driver.Problem] says what to do. A cancelled context ends it with its cause.
func Open(ctx context.Context, dir string, o Options) (_ *Session, err error) {
	facts, err := ReadFacts(dir)
	if err != nil {
		return nil, err
	}
	fatbin := filepath.Join(dir, FatbinFile)
	image, err := infile.Read(fatbin, infile.Module)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &BuildError{Path: fatbin, What: "the compiled kernel is missing",
			Remedy: "build it: run make in " + dir}
	} else if err != nil {
		return nil, &BuildError{Path: fatbin, What: "the compiled kernel cannot be read", Err: err}
	}

	dev, err := driver.Open(o.GPU)
	if err != nil {
		return nil, err
	}
	s := &Session{dir: dir, facts: facts, dev: dev, spinLimit: o.SpinLimit, openReference: o.Reference,
		variant: noVariant}
	if s.spinLimit == 0 {
		s.spinLimit = defaultSpinLimit
	}
	if s.openReference == nil {
		s.openReference = openReference
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := checkArch(facts.Target, dev.Facts()); err != nil {
		return nil, err
	}
	if err := s.load(image, fatbin); err != nil {
		return nil, err
	}
	if err := checkMemory(dev, s.info); err != nil {
		return nil, err
	}
	if err := s.fill(ctx, filepath.Join(dir, WeightsFile), o.Progress); err != nil {
		return nil, err
	}
	return s, nil
}

// load puts the code on the device and checks that it is the manifest's and fits.
func (s *Session) load(image []byte, path string) (err error) {
	built := driver.Built{Targets: []string{s.facts.Target.Arch}, CUDA: s.facts.CUDA}
	if s.module, err = s.dev.LoadFatbin(image, built); err != nil {
		return err
	}
	if s.info, err = readInfo(s.dev, s.module); err != nil {
		return &BuildError{Path: path, What: "not a kernel that this program can run",
			Remedy: "compile the model again, and use the " +
				"launcher of the same build", Err: err}
	}
	if what := s.info.mismatch(s.facts); what != "" {
		return &BuildError{Path: path, What: what, Remedy: "it belongs to another build: run make again"}
	}
	if err := checkShape(s.info, s.dev.Facts()); err != nil {
		return err
	}
	if s.decode, err = s.kernel(s.module, FatbinFile, decodeName); err != nil {
		return err
	}
	if s.ceiling, err = s.kernel(s.module, FatbinFile, ceilingName); err != nil {
		return err
	}
	s.stream, err = s.dev.NewStream()
	return err
}

// kernel looks one of the megakernels up and makes it ready to be launched.
func (s *Session) kernel(m *driver.Module, file, name string) (*driver.Function, error) {
	f, err := m.Function(name)
	if err != nil {
		return nil, &BuildError{Path: filepath.Join(s.dir, file), What: "not a kernel of amkc",
			Remedy: "run make again", Err: err}
	}
	if err := f.SetMaxDynamicShared(s.info.SharedBytes); err != nil {
		return nil, err
	}
	return f, checkOccupancy(f, s.info, s.dev.Facts())
}

// fill allocates the memory, loads the weights and clears the rest.
func (s *Session) fill(ctx context.Context, path string, progress Progress) error {
	w, err := openWeights(path, s.info.WeightBytes)
	if err != nil {
		return err
	}
	if s.mem, err = allocate(s.dev, s.info); err == nil {
		err = w.upload(ctx, s.dev, s.mem.weights, progress)
	}
	if err := errors.Join(err, w.close()); err != nil {
		return err
	}
	for _, z := range []struct {
		at    driver.Ptr
		bytes int
	}{{s.mem.cache, int(s.info.CacheBytes)}, {s.mem.scratch, s.mem.logits}} {
		if err := s.stream.MemsetD8(z.at, 0, z.bytes); err != nil {
			return err
		}
	}
	return s.stream.Synchronize()
}
