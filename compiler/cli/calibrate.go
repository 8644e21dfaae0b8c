package cli

import (
	"bytes"
	"fmt"
	"math"

	"amkc/compiler"
	"amkc/runtime/infile"
)

// calibration reads what --calibrate names: token ids if the file is one of NumPy, and else a text for the tokenizer of
// the model.
func (m *modelFlags) calibration(c *call, dir string) (*compiler.CalibrationText, error) {
	if m.calibrate == "" {
		return nil, nil
	}
	if len(m.weights) == 0 {
		return nil, c.usage("--calibrate says how to round what is quantised, and nothing is; want --weights with it")
	}
	raw, err := readFile(m.calibrate, infile.Text)
	if err != nil {
		return nil, err
	}
	text := &compiler.CalibrationText{}
	if bytes.HasPrefix(raw, []byte(npyMagic)) {
		text.IDs, err = readIDs(m.calibrate, raw)
	} else {
		tok, failed := compiler.LoadTokenizer(dir)
		if failed != nil {
			return nil, fmt.Errorf("--calibrate works without a tokenizer where FILE has token ids: %w", failed)
		}
		encoded, failed := encodeText(tok, "--calibrate", string(raw))
		text.Lead, text.IDs, err = encoded.Lead, encoded.IDs, failed
	}
	if err != nil {
		return nil, err
	}
	return text, checkIDs("--calibrate", text.IDs, 0, math.MaxInt, math.MaxInt)
}
