package soundness

// explained says why validate may reject what the oracles find nothing wrong with, by code. Each is a hazard outside
// of what they can see, or a rule that is stricter than safety on purpose; docs/validator.md says which is which. A
// code that is not here may not reject such a program.
var explained = map[string]string{
	"AMK3010": "a name that is defined twice: the machine goes by numbers, and either meaning was safe here",
	"AMK3012": "a view or a distribution that is malformed but touches nothing",
	"AMK3022": "a buffer that its page cannot hold, of which nothing outside was touched",
	"AMK3101": "a name that is defined twice or an index that nothing uses",
	"AMK3103": "a view that lies outside at a position that was not among those run",
	"AMK3104": "a length that depends on pos: it would change what a step touches, and is refused although it fits " +
		"at the positions run",
	"AMK3106": "a layout that the machine, which moves whole elements, does not care about",
	"AMK3108": "exchanged memory whose view depends on pos: the edges would change from step to step, and did " +
		"not at those run",
	"AMK3109": "operands of one op that overlap where the task has the words at hand, or declares more than is touched",
	"AMK3110": "a realisation that nothing depends on",
	"AMK3111": "a flagged wait with a threshold above its producers: polls have no count",
	"AMK3112": "a wait that can pass early: nothing that the late producer does was needed, or the counter is " +
		"flagged and polls have no count",
	"AMK3113": "a wait that no producer satisfies: its counter starts high enough, or it is flagged and there is " +
		"nothing to poll",
	"AMK3116": "a counter of one SM used from others without effect on what they touch",
	"AMK3120": "a cycle through a flagged wait that polls nothing, which the machine passes at once",
	"AMK3130": "a declared read that the reference code does not make",
	"AMK3131": "a declared read that the reference code does not make, or two steps that were not run next " +
		"to each other",
	"AMK3132": "words whose second value nobody reads, or declared writes that are not made",
	"AMK3133": "plain memory ordered by a flag that is declared and not touched",
	"AMK3134": "words written twice in one exchange with nobody polling them",
	"AMK3135": "words overwritten that nobody has seen, and whose second value nobody reads; or a release of the " +
		"writer's SM, which the machine performs at once and PTX promises only to who acquires it",
	"AMK3136": "a task that polls after publishing, where nobody uses the page in between: the device's stage " +
		"bodies rely on the order",
	"AMK3137": "more exchanges than epochs: the machine does not wrap them",
	"AMK3138": "a task that waits for two exchanges of one buffer: the machine takes the words of either, a device " +
		"polls for one epoch",
	"AMK3140": "a declared read that the reference code does not make, or a position that was not among those run",
	"AMK3141": "a gap at a position that was not among those run",
	"AMK3142": "a declared read that the reference code does not make, or of words that the task has at hand from " +
		"an earlier op",
	"AMK3143": "an index that another element of its buffer holds, of which the rule takes the largest",
	"AMK3150": "on-chip memory that is declared and not touched",
	"AMK3160": "a step whose end does not cover every task, where the next step meets none of the late ones",
	"AMK3161": "no token: the next step takes what is there",
	"AMK3163": "a row that the step should append and nobody reads afterwards, at the positions run",
	"AMK3164": "a cache by the position of another sequence, where nothing reads what was put in the wrong place, or " +
		"the sequences were where it does not matter at the positions run",
	"AMK3170": "a row that the kernel copies because it copies whole blocks, and does not use; or what is written " +
		"after all who read it",
	"AMK3190": "a program beyond the budget of a proof",
}
