package search

import "amkc/ir/diag"

var (
	codeNoVerdict = diag.New("AMK6001", "the file is no verdict", `
A verdict is the JSON object that amkc eval --json prints: what was judged, its class, the proof, what was compared, and
times where all of that has passed. The message says what is missing or does not fit.`)

	codeForged = diag.New("AMK6002", "a verdict is not signed", `
amkc eval signs every verdict with a key that belongs to the user, and a campaign takes no other: a latency that
somebody states, an edited verdict and one of another machine's key are all refused. Evaluate the configuration here:

    amkc eval MODEL --config F --baseline G --json`)

	codeKey = diag.New("AMK6003", "the key of verdicts cannot be used", `
Verdicts are signed with a key of the user's, verdict.key in amkc's directory of the user's configuration; --key names
another file. It is made where it is missing, and readable by the user alone. Campaigns on several machines need the
same key: copy the file.`)
)
