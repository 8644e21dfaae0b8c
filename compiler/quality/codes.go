package quality

import "amkc/ir/diag"

var (
	codeVocabularies = diag.New("AMK1209", "the vocabularies of two models differ", `
amkc quality compares what two models expect of the next token. Their logits are numbers for the same ids only if both
have the same vocabulary. A checkpoint whose vocabulary was padded to another size cannot be compared with one that was
not.

    amkc quality model/ --against model/ --dtype bf16 --against-dtype fp32 --text file.txt`)

	codeShort = diag.New("AMK1211", "the text is too short for what is asked of it", `
A window of the text needs a token that stands after another one: the first has nothing that it could be predicted
from. Tokens that the tokenizer puts in front of every text take places of the window too. The text is cut to --tokens
tokens first, where that is given, and then into windows of --window tokens.`)

	codeFinite = diag.New("AMK1212", "logits are not finite", `
A logit is infinite or not a number, so that no probabilities follow from the logits. In fp16 an activation above 65504
is infinite: --dtype bf16 has the range of fp32. The message names the side and the first such id, and its note the
place in the text.`)

	codePositions = diag.New("AMK1213", "a window or a continuation needs more positions than there are", `
Every window of a text, and every prompt with what is decoded after it, begins at position 0, and a program is compiled
for --max-seq positions. Both sides need that many. Take shorter windows or fewer tokens, or compile for more:

    amkc quality model/ --against model/ --text file.txt --window 2k --max-seq 2k`)
)
