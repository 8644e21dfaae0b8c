package capi

// #include <stddef.h>
// #include <stdint.h>
// #include <stdlib.h>
// #define const // cgo writes prototypes without it, and the compiler compares them
// #include "amk.h"
// #undef const
import "C"

import (
	"unsafe"

	"amkc/runtime/library"
	"amkc/runtime/sampling"
)

//export amk_api_version
func amk_api_version() C.int { return C.AMK_API_VERSION }

//export amk_free
func amk_free(allocated unsafe.Pointer) { C.free(allocated) }

//export amk_open
func amk_open(dir *C.char, gpu C.int, model **C.amk_model, message **C.char) C.int {
	return answer(message, func() error {
		if dir == nil || model == nil {
			return errNull
		}
		m, err := Open(C.GoString(dir), int(gpu))
		if err == nil {
			*model = (*C.amk_model)(models.add(m))
		}
		return err
	})
}

//export amk_close
func amk_close(model *C.amk_model) {
	answer(nil, func() error {
		if m, there := models.remove(unsafe.Pointer(model)); there {
			return m.Close()
		}
		return nil
	})
}

//export amk_describe
func amk_describe(model *C.amk_model, facts *C.amk_facts, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		if facts == nil {
			return errNull
		}
		*facts = C.amk_facts{vocab: C.int32_t(m.Vocab()), max_seq: C.int32_t(m.MaxSeq())}
		return nil
	})
}

//export amk_encode
func amk_encode(model *C.amk_model, text *C.char, bytes C.size_t, flags C.int, ids **C.int32_t, count *C.size_t,
	message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		given, err := stringOf(text, bytes)
		if err != nil {
			return err
		}
		special, err := specialIn(flags)
		if err != nil {
			return err
		}
		found, err := m.Encode(given, special)
		return giveIDs(found, err, ids, count)
	})
}

//export amk_decode
func amk_decode(model *C.amk_model, ids *C.int32_t, count C.size_t, flags C.int, text **C.char, bytes *C.size_t,
	message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		given, err := idsOf(ids, count)
		if err != nil {
			return err
		}
		special, err := specialIn(flags)
		switch {
		case err != nil:
			return err
		case text == nil || bytes == nil:
			return errNull
		}
		found, err := m.Decode(given, special)
		if err == nil {
			*text, *bytes = C.CString(found), C.size_t(len(found))
		}
		return err
	})
}

//export amk_chat
func amk_chat(model *C.amk_model, json *C.char, bytes C.size_t, ids **C.int32_t, count *C.size_t,
	message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		given, err := stringOf(json, bytes)
		if err != nil {
			return err
		}
		found, err := m.Chat([]byte(given))
		return giveIDs(found, err, ids, count)
	})
}

//export amk_logits
func amk_logits(model *C.amk_model, ids *C.int32_t, count, rows C.size_t, logits *C.float, room C.size_t,
	message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		given, err := idsOf(ids, count)
		if err != nil {
			return err
		}
		vocab := m.Vocab()
		switch {
		case logits == nil:
			return errNull
		case rows > count: // so that the product below is that of numbers of ids and tokens
			return refused("the logits after the last %d of %d ids were asked for; want 1 to %d", rows, count, count)
		case uint64(room) < uint64(rows)*uint64(vocab):
			return refused("there is room for %d logits; want %d, for %d rows of %d", room,
				uint64(rows)*uint64(vocab), rows, vocab)
		}
		out := unsafe.Slice((*float32)(unsafe.Pointer(logits)), int(room))
		return m.Logits(given, int(rows), func(row int, of []float32) error {
			copy(out[row*vocab:][:vocab], of)
			return nil
		})
	})
}

//export amk_greedy
func amk_greedy(options *C.amk_options) {
	if options != nil {
		*options = C.amk_options{}
		setSampling(options, sampling.Greedy())
	}
}

//export amk_sampling
func amk_sampling(model *C.amk_model, options *C.amk_options, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		if options == nil {
			return errNull
		}
		o, err := m.Sampling()
		if err == nil {
			setSampling(options, o)
		}
		return err
	})
}

// setSampling sets what generation_config.json can say.
func setSampling(to *C.amk_options, o sampling.Options) {
	to.temperature, to.top_k = C.double(o.Temperature), C.int32_t(o.TopK)
	to.top_p, to.min_p = C.double(o.TopP), C.double(o.MinP)
	to.repetition_penalty = C.double(o.RepetitionPenalty)
}

//export amk_begin
func amk_begin(model *C.amk_model, prompt *C.int32_t, count C.size_t, options *C.amk_options, text **C.amk_text,
	message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		given, err := idsOf(prompt, count)
		if err != nil {
			return err
		}
		if options == nil || text == nil {
			return errNull
		}
		o, err := optionsOf(options)
		if err == nil && options.schema != nil {
			o.Form, err = m.Schema(C.GoString(options.schema))
		}
		if err != nil {
			return err
		}
		t, err := m.Begin(given, o)
		if err == nil {
			*text = (*C.amk_text)(texts.add(&openText{Text: t}))
		}
		return err
	})
}

//export amk_next
func amk_next(text *C.amk_text, allowed *C.int32_t, count C.size_t, token *C.amk_token, message **C.char) C.int {
	return answer(message, func() error {
		t, there := texts.get(unsafe.Pointer(text))
		switch {
		case !there:
			return refused("text is none that amk_begin has begun and amk_end has not ended")
		case token == nil:
			return errNull
		}
		var among []int
		if allowed != nil {
			var err error
			if among, err = idsOf(allowed, count); err != nil { // not nil if it is empty, which allows none
				return err
			}
		}
		next, err := t.Next(among)
		if err != nil {
			return err
		}
		C.free(unsafe.Pointer(t.shown))
		t.shown = C.CString(next.Text)
		*token = C.amk_token{id: C.int32_t(next.ID), text: t.shown, bytes: C.size_t(len(next.Text)),
			logprob: C.double(next.LogProb), finish: finishes[next.Finish]}
		return nil
	})
}

var finishes = map[string]C.int32_t{"": C.AMK_MORE, library.Stop: C.AMK_STOP, library.Length: C.AMK_LENGTH}

//export amk_end
func amk_end(text *C.amk_text) {
	if t, there := texts.remove(unsafe.Pointer(text)); there {
		C.free(unsafe.Pointer(t.shown))
	}
}

//export amk_save_prefix
func amk_save_prefix(model *C.amk_model, ids *C.int32_t, count C.size_t, path *C.char, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		given, err := idsOf(ids, count)
		if err != nil {
			return err
		}
		if path == nil {
			return errNull
		}
		return m.SavePrefix(given, C.GoString(path))
	})
}

//export amk_load_prefix
func amk_load_prefix(model *C.amk_model, path *C.char, ids **C.int32_t, count *C.size_t, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		if path == nil {
			return errNull
		}
		found, err := m.LoadPrefix(C.GoString(path))
		return giveIDs(found, err, ids, count)
	})
}
