package search

import "amkc/ir/diag"

var (
	codeNoVerdict = diag.New("AMK6001", "the file is not a verdict", `
A verdict is the JSON object that amkc search eval --json prints: what was judged, its class, the proof, what was
compared, and times where all of that has passed. The message says what is missing or does not fit.`)

	codeForged = diag.New("AMK6002", "a verdict is not signed", `
amkc search eval signs every verdict with the private half of a key pair that belongs to the user, and a campaign takes
no other than that with which it was begun: a latency that somebody states, an edited verdict and one of another key are
all refused. Evaluate the configuration here:

    amkc search eval MODEL --config F --baseline G --json

A campaign of somebody else is verified with the public half that they have published:

    amkc search campaign verify DIR --key FILE`)

	codeKey = diag.New("AMK6003", "the key of verdicts cannot be used", `
Verdicts are signed with a private key of the user's (Ed25519, PKCS #8 in PEM), verdict.key in amkc's directory of the
user's configuration; --key names another file. amkc search eval and amkc search make it where it is missing, readable
by the user alone, and write its public half to verdict.key.pub, which is enough to verify. Campaigns on several
machines need the same key: copy the file. Earlier versions had a secret of 64 digits in verdict.key: rename or remove
it.`)

	codeCampaign = diag.New("AMK6004", "the file is not a campaign", `
campaign.json says what a search was asked to do. It is written once, by amkc search, and never changed. The message
says what does not fit; a directory whose file was edited cannot be gone on with.`)

	codeJournal = diag.New("AMK6005", "the files of a campaign cannot be used", `
A campaign is a directory with campaign.json and trials.jsonl. It cannot be made, read or written to: a disk that is
full, missing permissions, a path that is not a directory, or a directory that has a campaign already, or files that a
campaign would replace.`)

	codeTrials = diag.New("AMK6006", "the trials of a campaign are not as they were written", `
Every line of trials.jsonl has the digest of the line before it, and the first one that of campaign.json. A line was
changed, removed, added or put elsewhere. Half a line at the very end is no fault: it is of a process that was killed,
and left out.`)

	codeBusy = diag.New("AMK6007", "another process works on the campaign", `
One process at a time carries a campaign on. Wait until it has ended; if it was killed, its hold ended with it.`)

	codeOther = diag.New("AMK6008", "a verdict is not for this campaign", `
A verdict belongs to a campaign if it is of the same model as the same amkc compiles it, for the same target, from the
same device, at the same positions and against the incumbent. amkc search campaign next says which evaluation is wanted,
and with which baseline.`)

	codeVerdictLost = diag.New("AMK6011", "an evaluation ended without a verdict", `
The process that judges a configuration has crashed, was killed, or printed something else than a verdict. The class of
the trial is CRASH, and the message has the last thing that the process said. The search goes on.`)

	codeKilled = diag.New("AMK6012", "an evaluation was killed", `
The process that judges a configuration did not end in the time that it was given, nor when it was asked to, and was
killed with its process group. The class of the trial is TIMEOUT. The search goes on.`)

	codeSlowBuild = diag.New("AMK6017", "building a configuration took too long", `
Each build of a round of amkc search may take a quarter of --timeout, because the round waits for all of them. The trial
is REJECTED, since nothing is known of what the configuration does. A value of a knob to which this happens three times
is not proposed any more, unless a trial with it has passed. Give a larger --timeout, or fewer --jobs, if the machine is
slow. Builds that certainly take longer are not begun (AMK5115).`)

	codeRules = diag.New("AMK6016", "a campaign was decided by other rules", `
The decision of a signed verdict is not what the rules of this amkc make of its times: an earlier or later amkc, whose
rules were others, has written it. Such a campaign can be read (amkc search campaign status, next and report), and not
be verified or gone on with here, because its trials would follow from two sets of rules. Use the amkc that wrote it,
whose version campaign.json has, or begin another campaign with --config at what this one has found.`)

	codeEarlier = diag.New("AMK6018", "a verdict or a campaign has an earlier form", `
Verdicts of amkc.verdict/1 were signed with a secret, so that nobody but its holder could verify them; those of
amkc.verdict/2, and campaigns of amkc.campaign/2, come from a search with other roles, rungs and rules. Read them with
the amkc that wrote them, whose version campaign.json has, or begin another campaign with --config at what that one has
found.`)

	codeOnly = diag.New("AMK6019", "a search is asked to vary what it cannot", `
--only of amkc search takes regions and knobs as amkc search space lists them: ring, exchange, attention, placement,
layers, a stage such as gate_up, or the path of a knob. A knob of which no value makes a difference for this model and
target is not varied.`)
)

// Codes of refusals by search/evaluate.
const (
	CodeFloor  = "AMK6103" // a time that is impossible
	CodeIdle   = "AMK6109" // the same step as that of the baseline
	CodeOrder  = "AMK6110" // another order of additions than that of the baseline, where the same bits are asked for
	CodeMemory = "AMK6111" // more of the GPU's memory than a configuration may take
)
