package driver

// A Stream is a queue of work for the GPU. What runs on it is ordered; two streams are not. All its methods but
// Synchronize return as soon as the work is queued, and an error of the work itself may come from any later call.
type Stream struct {
	dev    *Device
	handle uintptr
}

// streamNonBlocking keeps a stream from waiting for the default stream, which this package never uses.
const streamNonBlocking = 1

// NewStream creates a stream.
func (d *Device) NewStream() (*Stream, error) {
	s := &Stream{dev: d}
	err := d.invoke("cuStreamCreate", func() result { return d.lib.api.StreamCreate(&s.handle, streamNonBlocking) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Synchronize waits until the stream is idle, and occupies the device's thread meanwhile.
func (s *Stream) Synchronize() error {
	return s.dev.invoke("cuStreamSynchronize", func() result { return s.dev.lib.api.StreamSynchronize(s.handle) })
}

// Query says whether the stream is idle, without waiting.
func (s *Stream) Query() (idle bool, err error) {
	return finished(s.dev.invoke("cuStreamQuery", func() result { return s.dev.lib.api.StreamQuery(s.handle) }))
}

// Close destroys the stream once its work is done; it does not wait.
func (s *Stream) Close() error {
	return s.dev.invoke("cuStreamDestroy", func() result { return s.dev.lib.api.StreamDestroy(s.handle) })
}

// finished reads the answer of a query: "not ready" is an answer, not a failure.
func finished(err error) (bool, error) {
	if codeOf(err) == errNotReady {
		return false, nil
	}
	return err == nil, err
}
