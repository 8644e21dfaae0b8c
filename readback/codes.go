package readback

import "amkc/ir/diag"

var (
	codeGrammar = diag.New("AMK4911", "a header does not open with the block of literals", `
schedule.h, pages.h, model_config.h and stages.h open with a comment, includes of amk/ and then, between the marks
amkc:literals and amkc:end, declarations with literal values: constants, enumerations, descriptors; stages.h has the
functions of the matrix stages there, calls of amk/ and nothing else. docs/verify.md has the grammar. The message says
what stands there instead. Compile again; the block is not meant to be edited.`)

	codeConstants = diag.New("AMK4912", "constants of the headers that no schedule has", `
The schedule was read back out of the headers, and these constants contradict one another, or the device code that
they are for: a constant that is missing or unknown, of another type, or not what follows from the others. Examples:
kTasks that is not the number of tasks of the distribution next to it, a page that overlaps its neighbour, the comment
of a stage that lists other ops than its body computes, a function of stages.h with a parameter that it does not
use. Compile again; a schedule is changed by the configuration (--config), not in the headers.`)

	codeDiffers = diag.New("AMK4913", "the headers say something else than program.json", `
The schedule was read back out of schedule.h, pages.h, model_config.h and stages.h, and it is another one than
program.json has: the message names the entity, the field, and both values. One of the files was edited, or they are
of different builds.`)

	codeLoops = diag.New("AMK4914", "loops that are not read back", `
The schedule is rebuilt out of the headers where the kernel has one loop over all layers of the model, one by one, or
none. Where schedule.h has a list kLoops its loops are others: several, or one over every other layer, or one that
leaves out the first or the last. Such a program is emitted and proved as it is compiled (amkc validate
DIR/program.json), but what the headers say of it is not proved again, and verify does not pass it.`)

	codeCalls = diag.New("AMK4915", "the kernel calls other stages than the headers describe", `
megakernel.cu has two walks over a step, between the marks amkc:walk, amkc:consume and amkc:end: what the producer
streams, and the calls of the stages with their pages and addresses. They are loops over the layers, branches on the
position and on the kind of a layer, and calls; docs/verify.md has the grammar. Either something else stands there, or
the calls are not those of the schedule that the headers describe: another order, another page or weight, a matrix or
a cache that is streamed and not used, or used and not streamed. Compile again; the calls are not meant to be edited.`)
)
