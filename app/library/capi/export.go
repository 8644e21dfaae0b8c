package capi

// #include <stdlib.h>
// #include "amk.h"
// int amk_tell(amk_watcher watcher, void *data, size_t done, size_t total);
import "C"

import (
	"unsafe"

	"amkc/app/library"
	"amkc/runtime/host"
	"amkc/text/sampling"
)

// The functions of amk.h are in calls.c, and call these.

//export go_amk_open
func go_amk_open(dir *C.char, gpu C.int, model **C.amk_model, message **C.char) C.int {
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

//export go_amk_close
func go_amk_close(model *C.amk_model) {
	answer(nil, func() error {
		if m, there := models.remove(unsafe.Pointer(model)); there {
			return m.Close()
		}
		return nil
	})
}

//export go_amk_describe
func go_amk_describe(model *C.amk_model, facts *C.amk_facts, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		if facts == nil {
			return errNull
		}
		*facts = C.amk_facts{vocab: C.int32_t(m.Vocab()), max_seq: C.int32_t(m.MaxSeq())}
		return nil
	})
}

//export go_amk_encode
func go_amk_encode(model *C.amk_model, text *C.char, bytes C.size_t, flags C.int, ids **C.int32_t, count *C.size_t,
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

//export go_amk_decode
func go_amk_decode(model *C.amk_model, ids *C.int32_t, count C.size_t, flags C.int, text **C.char, bytes *C.size_t,
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

//export go_amk_chat
func go_amk_chat(model *C.amk_model, json *C.char, bytes C.size_t, ids **C.int32_t, count *C.size_t,
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

//export go_amk_logits
func go_amk_logits(model *C.amk_model, ids *C.int32_t, count, rows C.size_t, logits *C.float, room C.size_t,
	message **C.char) C.int {
	if logits == nil {
		return answer(message, func() error { return errNull })
	}
	prompt := C.amk_prompt{ids: ids, count: count}
	return go_amk_outputs(model, &prompt, rows, logits, room, nil, 0, message)
}

//export go_amk_hidden_size
func go_amk_hidden_size(model *C.amk_model, hidden *C.size_t, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		if hidden == nil {
			return errNull
		}
		*hidden = C.size_t(m.Hidden())
		return nil
	})
}

//export go_amk_outputs
func go_amk_outputs(model *C.amk_model, prompt *C.amk_prompt, rows C.size_t, logits *C.float, logitsRoom C.size_t,
	hidden *C.float, hiddenRoom C.size_t, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		given, err := promptOf(prompt, m.Hidden())
		switch {
		case err != nil:
			return err
		case rows > prompt.count: // so that the products below are those of numbers of ids and of elements
			return refused("outputs of the last %d of %d positions were asked for; want 1 to %d", rows, prompt.count,
				prompt.count)
		case logits == nil && hidden == nil:
			return errNull
		}
		var want host.Outputs
		if want.Logits, err = rowsInto(logits, logitsRoom, rows, m.Vocab(), "logits"); err != nil {
			return err
		}
		if want.Hidden, err = rowsInto(hidden, hiddenRoom, rows, m.Hidden(), "hidden states"); err != nil {
			return err
		}
		return m.Outputs(given, int(rows), want)
	})
}

//export go_amk_default_options
func go_amk_default_options(options *C.amk_options, size C.size_t, message **C.char) C.int {
	return answer(message, func() error {
		if options == nil {
			return errNull
		}
		if err := sized(size); err != nil {
			return err
		}
		*options = C.amk_options{size: size}
		setSampling(options, sampling.Greedy())
		return nil
	})
}

//export go_amk_sampling
func go_amk_sampling(model *C.amk_model, options *C.amk_options, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		if options == nil {
			return errNull
		}
		if err := sized(options.size); err != nil {
			return err
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

//export go_amk_begin
func go_amk_begin(model *C.amk_model, prompt *C.int32_t, count C.size_t, options *C.amk_options, text **C.amk_text,
	message **C.char) C.int {
	given := C.amk_prompt{ids: prompt, count: count}
	return go_amk_begin_prompt(model, &given, options, text, message)
}

//export go_amk_begin_prompt
func go_amk_begin_prompt(model *C.amk_model, prompt *C.amk_prompt, options *C.amk_options, text **C.amk_text,
	message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		given, err := promptOf(prompt, m.Hidden())
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

//export go_amk_next
func go_amk_next(text *C.amk_text, allowed *C.int32_t, count C.size_t, token *C.amk_token, message **C.char) C.int {
	return answer(message, func() error {
		t, there := texts.get(unsafe.Pointer(text))
		switch {
		case !there:
			return refused("text is not one that amk_begin has begun and amk_end has not ended")
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

//export go_amk_end
func go_amk_end(text *C.amk_text) {
	if t, there := texts.remove(unsafe.Pointer(text)); there {
		C.free(unsafe.Pointer(t.shown))
	}
}

//export go_amk_watch
func go_amk_watch(model *C.amk_model, watcher C.amk_watcher, data unsafe.Pointer, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		if watcher == nil {
			m.Watch(nil)
			return nil
		}
		m.Watch(func(done, total int) bool {
			return C.amk_tell(watcher, data, C.size_t(done), C.size_t(total)) != 0
		})
		return nil
	})
}

//export go_amk_save_prefix
func go_amk_save_prefix(model *C.amk_model, ids *C.int32_t, count C.size_t, path *C.char, message **C.char) C.int {
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

//export go_amk_load_prefix
func go_amk_load_prefix(model *C.amk_model, path *C.char, ids **C.int32_t, count *C.size_t, message **C.char) C.int {
	return with(model, message, func(m *library.Model) error {
		if path == nil {
			return errNull
		}
		found, err := m.LoadPrefix(C.GoString(path))
		return giveIDs(found, err, ids, count)
	})
}
