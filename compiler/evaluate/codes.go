package evaluate

import "amkc/ir/diag"

var codeUnforeseen = diag.New("AMK6101", "an evaluation failed in a way it did not foresee", `
Something failed that no diagnostic describes, while a configuration was lowered, proved, emitted or measured. The
message is that of the operating system or of a library. The class of the verdict is CRASH: nothing is known of the
configuration, and a search does not take it for bad.`)
