package host

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"

	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// Names in measure.fatbin.
const (
	profileName = "amk_profile"
	drainName   = "amk_drain"
	readName    = "amk_read"
)

// Of the plain read (amk/read.cuh).
const (
	readThreads = 512
	readBlocks  = 2 // an SM
	readSize    = 32
)

// measures are the kernels of measure.fatbin: forms of the decode step that nothing but a measurement launches.
type measures struct {
	s                    *Session
	module               *driver.Module
	profile, drain, read *driver.Function
}

// openMeasures loads them. They must be closed.
func (s *Session) openMeasures() (_ *measures, err error) {
	path := filepath.Join(s.dir, MeasureFile)
	image, err := infile.Read(path, infile.Module)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &BuildError{Path: path, What: "the kernels that a measurement needs are missing",
			Remedy: "build them: run make in " + s.dir}
	} else if err != nil {
		return nil, &BuildError{Path: path, What: "the measuring kernels cannot be read", Err: err}
	}
	m := &measures{s: s}
	if m.module, err = s.dev.LoadFatbin(image,
		driver.Built{Targets: []string{s.facts.Target.Arch}, CUDA: s.facts.CUDA}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	info, err := readInfo(s.dev, m.module)
	if err != nil {
		return nil, &BuildError{Path: path, What: "not the measuring kernels of amkc", Remedy: "run make again",
			Err: err}
	}
	if !reflect.DeepEqual(info, s.info) {
		return nil, &BuildError{Path: path, What: "made from other sources than " + FatbinFile,
			Remedy: "run make again"}
	}
	if m.profile, err = s.kernel(m.module, MeasureFile, profileName); err != nil {
		return nil, err
	}
	if m.drain, err = s.kernel(m.module, MeasureFile, drainName); err != nil {
		return nil, err
	}
	if m.read, err = m.module.Function(readName); err != nil {
		return nil, &BuildError{Path: path, What: "not the measuring kernels of amkc", Remedy: "run make again",
			Err: err}
	}
	return m, nil
}

func (m *measures) close() error {
	if err := m.module.Close(); !driver.IsSticky(err) {
		return err
	}
	return nil
}

// leastRead is how much a launch of the plain read reads at least, where the steps of a launch do: in less, the ends
// of the launch would show.
const leastRead = 4 << 30

// timedRead is the plain read of as many bytes as the steps stream of weights; of large models in one pass, which is
// as good as many. Its times are microseconds for bytes.
func (m *measures) timedRead(steps int) (k *timedKernel, bytes int64) {
	bytes = m.s.facts.Traffic.Weights / 16 * 16
	bytes = min(bytes, m.s.info.WeightBytes/16*16)
	passes := min(int64(steps), (leastRead+bytes-1)/max(1, bytes))
	arg := make([]byte, 0, readSize)
	le := binary.LittleEndian
	arg = le.AppendUint64(arg, uint64(m.s.mem.weights))
	arg = le.AppendUint64(arg, uint64(bytes))
	// what is there is written before it is read
	arg = le.AppendUint64(arg, uint64(m.s.mem.scratch)+uint64(m.s.mem.logits))
	arg = le.AppendUint32(arg, uint32(passes))
	arg = le.AppendUint32(arg, 0)
	grid, block := driver.Dim{X: readBlocks * m.s.info.SMs}, driver.Dim{X: readThreads}
	return &timedKernel{per: float64(passes), queue: func() error {
		return m.s.stream.Launch(m.read, grid, block, 0, arg)
	}}, bytes
}
