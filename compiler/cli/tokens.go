package cli

import "amkc/ir/diag"

// checkIDs refuses ids outside the vocabulary, and texts that are empty or need more positions than the program has:
// one for each id, and one for each of more tokens but the last, which is not decoded.
func checkIDs(flag string, ids []int, more, vocab, maxSeq int) error {
	switch need := len(ids) + max(0, more-1); {
	case len(ids) == 0:
		return diag.Errorf(codePrompt, flag, "there are no tokens; want at least one")
	case need > maxSeq:
		return diag.Errorf(codePrompt, flag,
			"%d tokens and %d more after them take %d positions, and the program is compiled for %d; "+
				"want fewer, or compile with --max-seq %[3]d", len(ids), more, need, maxSeq)
	}
	for i, id := range ids {
		if id < 0 || id >= vocab {
			return diag.Errorf(codePrompt, flag, "token %d is %d; want ids from 0 to %d", i, id, vocab-1)
		}
	}
	return nil
}
