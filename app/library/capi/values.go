package capi

// #include <stdlib.h>
// #include "amk.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"amkc/app/library"
	"amkc/runtime/host"
	"amkc/text/chat"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// handles are what C has pointers to. A handle is an address of C's memory, which has nothing in it: Go's own pointers
// must not be kept by C.
type handles[T any] struct {
	mu  sync.Mutex
	all map[unsafe.Pointer]T
}

var (
	models handles[*library.Model]
	texts  handles[*openText]
)

// An openText is a text with the characters that amk_next has shown last.
type openText struct {
	*library.Text
	shown *C.char
}

func (h *handles[T]) add(v T) unsafe.Pointer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[unsafe.Pointer]T{}
	}
	at := C.malloc(1)
	h.all[at] = v
	return at
}

func (h *handles[T]) get(at unsafe.Pointer) (v T, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, there = h.all[at]
	return v, there
}

func (h *handles[T]) remove(at unsafe.Pointer) (v T, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v, there = h.all[at]; there {
		delete(h.all, at)
		C.free(at)
	}
	return v, there
}

func refused(format string, args ...any) error {
	return &library.InputError{What: fmt.Sprintf(format, args...)}
}

var errNull = refused("a pointer is NULL that has to lead somewhere")

// with calls f with the model of a handle.
func with(model *C.amk_model, message **C.char, f func(*library.Model) error) C.int {
	return answer(message, func() error {
		m, there := models.get(unsafe.Pointer(model))
		if !there {
			return refused("model is not one that amk_open has opened and amk_close has not closed")
		}
		return f(m)
	})
}

// answer calls f, and says how it went.
func answer(message **C.char, f func() error) C.int {
	err := guarded(f)
	if err == nil {
		return C.AMK_OK
	}
	if message != nil {
		*message = C.CString(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return status(err)
}

// A bug is a panic of the library.
type bug struct{ what any }

func (b *bug) Error() string { return fmt.Sprintf("a bug of the library: %v", b.what) }

// guarded calls f, whose panic is an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &bug{p}
		}
	}()
	return f()
}

// status tells input at fault from everything else, as the exit codes of a launcher do.
func status(err error) C.int {
	var (
		internal    *bug
		input       *library.InputError
		build       *host.BuildError
		several     *host.SeveralError
		position    *host.PositionError
		prefix      *host.PrefixError
		id          *host.TokenError
		format      *tokenizer.FormatError
		unsupported *tokenizer.UnsupportedError
		template    *chat.FileError
		config      *sampling.ConfigError
		option      *sampling.OptionError
		logits      *sampling.LogitsError
	)
	if errors.As(err, &internal) {
		return C.AMK_INTERNAL
	}
	for _, target := range []any{&input, &build, &several, &position, &prefix, &id, &format, &unsupported, &template,
		&config, &option, &logits} {
		if errors.As(err, target) {
			return C.AMK_INPUT
		}
	}
	return C.AMK_MACHINE
}

func stringOf(text *C.char, bytes C.size_t) (string, error) {
	switch {
	case text == nil && bytes > 0:
		return "", errNull
	case bytes > math.MaxInt32:
		return "", refused("a text has %d bytes; want at most %d", bytes, math.MaxInt32)
	}
	return C.GoStringN(text, C.int(bytes)), nil
}

func idsOf(ids *C.int32_t, count C.size_t) ([]int, error) {
	switch {
	case ids == nil && count > 0:
		return nil, errNull
	case count > math.MaxInt32:
		return nil, refused("there are %d ids; want at most %d", count, math.MaxInt32)
	}
	out := make([]int, count)
	for i, id := range unsafe.Slice(ids, int(count)) {
		out[i] = int(id)
	}
	return out, nil
}

// promptOf copies a prompt whose embeddings have n elements each.
func promptOf(p *C.amk_prompt, hidden int) (library.Prompt, error) {
	if p == nil {
		return library.Prompt{}, errNull
	}
	ids, err := idsOf(p.ids, p.count)
	switch {
	case err != nil:
		return library.Prompt{}, err
	case p.num_embeddings > p.count:
		return library.Prompt{}, refused("%d embeddings are given, and there are %d ids; want a row for each "+
			"AMK_EMBEDDING among these", p.num_embeddings, p.count)
	case p.num_embeddings > 0 && p.embeddings == nil:
		return library.Prompt{}, errNull
	}
	rows := unsafe.Slice((*float32)(unsafe.Pointer(p.embeddings)), int(p.num_embeddings)*hidden)
	return library.Prompt{IDs: ids, Embeddings: slices.Clone(rows)}, nil
}

// rowsInto returns what writes rows of n elements to C; nil for none.
func rowsInto(to *C.float, room, rows C.size_t, size int, what string) (func(int, []float32) error, error) {
	want := uint64(rows) * uint64(size)
	switch {
	case to == nil && room == 0:
		return nil, nil
	case to == nil:
		return nil, errNull
	case uint64(room) < want:
		return nil, refused("there is room for %d %s; want %d, for %d rows of %d", room, what, want, rows, size)
	}
	out := unsafe.Slice((*float32)(unsafe.Pointer(to)), int(room))
	return func(row int, of []float32) error {
		copy(out[row*size:][:size], of)
		return nil
	}, nil
}

// giveIDs allocates ids for C, unless there is an error.
func giveIDs(found []int, err error, ids **C.int32_t, count *C.size_t) error {
	switch {
	case err != nil:
		return err
	case ids == nil || count == nil:
		return errNull
	}
	all := (*C.int32_t)(C.malloc(C.size_t(4 * max(1, len(found)))))
	for i, id := range found {
		unsafe.Slice(all, len(found))[i] = C.int32_t(id)
	}
	*ids, *count = all, C.size_t(len(found))
	return nil
}

func specialIn(flags C.int) (bool, error) {
	if flags&^C.AMK_SPECIAL != 0 {
		return false, refused("flags are %d; want 0 or AMK_SPECIAL", flags)
	}
	return flags != 0, nil
}

// sized refuses options of another size than this version of amk.h gives them.
func sized(size C.size_t) error {
	if size != C.sizeof_amk_options {
		return refused("options have %d bytes, and this library knows %d: call amk_default_options(&options, "+
			"sizeof options, ...) first, with the amk.h of the library", size, C.sizeof_amk_options)
	}
	return nil
}

// optionsOf reads options, and copies what they lead to.
func optionsOf(o *C.amk_options) (out library.Options, err error) {
	if err := sized(o.size); err != nil {
		return out, err
	}
	out.Options = sampling.Options{Temperature: float64(o.temperature), TopK: int(o.top_k), TopP: float64(o.top_p),
		MinP: float64(o.min_p), RepetitionPenalty: float64(o.repetition_penalty),
		PresencePenalty: float64(o.presence_penalty), FrequencyPenalty: float64(o.frequency_penalty),
		Seed: uint64(o.seed), LogProbs: -1}
	if o.logprobs != 0 {
		out.LogProbs = 0
	}
	out.MaxTokens, out.IgnoreEOS = int(o.max_tokens), o.ignore_eos != 0
	if o.num_stops > 0 && o.stops == nil {
		return out, errNull
	}
	for _, stop := range unsafe.Slice(o.stops, int(o.num_stops)) {
		if stop == nil {
			return out, errNull
		}
		out.Stops = append(out.Stops, C.GoString(stop))
	}
	ids, err := idsOf(o.bias_ids, o.num_biases)
	if err != nil {
		return out, err
	}
	if len(ids) > 0 {
		if o.biases == nil {
			return out, errNull
		}
		out.Bias = map[int]float64{}
		for i, b := range unsafe.Slice(o.biases, len(ids)) {
			out.Bias[ids[i]] = float64(b)
		}
	}
	return out, nil
}
