package driver

// An Event marks a point in a stream, and the time at which the GPU passed it.
type Event struct {
	dev    *Device
	handle uintptr
}

// NewEvent creates an event that keeps time.
func (d *Device) NewEvent() (*Event, error) {
	e := &Event{dev: d}
	if err := d.invoke("cuEventCreate", func() result { return d.lib.api.EventCreate(&e.handle, 0) }); err != nil {
		return nil, err
	}
	return e, nil
}

// Record puts the event behind the work that the stream holds now. Recording again moves it.
func (s *Stream) Record(e *Event) error {
	return s.dev.invoke("cuEventRecord", func() result { return s.dev.lib.api.EventRecord(e.handle, s.handle) })
}

// Synchronize waits until the GPU has passed the event, and occupies the device's thread meanwhile. An event that was
// never recorded counts as passed.
func (e *Event) Synchronize() error {
	return e.dev.invoke("cuEventSynchronize", func() result { return e.dev.lib.api.EventSynchronize(e.handle) })
}

// Query says whether the GPU has passed the event, without waiting.
func (e *Event) Query() (passed bool, err error) {
	return finished(e.dev.invoke("cuEventQuery", func() result { return e.dev.lib.api.EventQuery(e.handle) }))
}

// ElapsedMS returns the milliseconds from start to end, to about half a microsecond. Both must have been passed.
func ElapsedMS(start, end *Event) (float64, error) {
	var ms float32
	err := start.dev.invoke("cuEventElapsedTime", func() result {
		return start.dev.lib.api.EventElapsedTime(&ms, start.handle, end.handle)
	})
	return float64(ms), err
}

// Close destroys the event; it does not wait.
func (e *Event) Close() error {
	return e.dev.invoke("cuEventDestroy", func() result { return e.dev.lib.api.EventDestroy(e.handle) })
}
