package exploration

// Why two properties do not occur together.
const (
	noModel       = "no model of testdata/models/zoo has both"
	noTensorCores = "the kernel for prompts multiplies 16-bit elements on tensor cores, by mma.m16n8k16"
	noBarrier     = "there is no kernel for prompts with barriers between layers, which others are measured against"
	noExperts     = "no model of testdata/models/zoo that the kernel runs has both"
	oneVariant    = "each sequence of a pass may be at any position, so that a build has one variant (AMK5103)"
)

// impossible are the pairs that no build has, and why. One that a build of the table has fails its test, and so does a
// pair that is neither here nor there.
var impossible = map[pair]string{
	{"norms", "after branches", "means", "taken off"}:                  noModel,
	{"norms", "before and after branches", "means", "taken off"}:       noModel,
	{"norms", "after branches", "branches", "parallel"}:                noModel,
	{"norms", "before and after branches", "branches", "parallel"}:     noModel,
	{"norms", "after branches", "norms of heads", "none"}:              noModel,
	{"norms", "before and after branches", "norms of heads", "of all"}: noModel,
	{"norms", "after branches", "caps", "some"}:                        noModel,
	{"norms", "before branches", "caps", "some"}:                       noModel,
	{"norms", "after branches", "gates", "none"}:                       noModel,
	{"norms", "before and after branches", "gates", "none"}:            noModel,
	{"means", "kept", "branches", "parallel"}:                          noModel,
	{"means", "taken off", "norms of heads", "of all"}:                 noModel,
	{"means", "taken off", "caps", "some"}:                             noModel,
	{"branches", "parallel", "norms of heads", "of all"}:               noModel,
	{"branches", "parallel", "caps", "some"}:                           noModel,
	{"windows", "none", "caps", "some"}:                                noModel,
	{"windows", "some", "gates", "none"}:                               noModel,
	{"norms of heads", "of all", "caps", "some"}:                       noModel,
	{"norms of heads", "of each", "caps", "some"}:                      noModel,
	{"norms of heads", "of all", "gates", "none"}:                      noModel,
	{"biases", "some", "caps", "some"}:                                 noModel,
	{"caps", "some", "gates", "none"}:                                  noModel,

	{"norms", "after branches", "experts", "some"}:            noExperts,
	{"norms", "before and after branches", "experts", "some"}: noExperts,
	{"means", "taken off", "experts", "some"}:                 noExperts,
	{"branches", "parallel", "experts", "some"}:               noExperts,
	{"caps", "some", "experts", "some"}:                       noExperts,
	{"experts", "some", "gates", "none"}:                      noExperts,

	{"arch", "sm_75", "prompt", "yes"}:  noTensorCores,
	{"dtype", "fp32", "prompt", "yes"}:  noTensorCores,
	{"prompt", "yes", "barrier", "yes"}: noBarrier,

	{"sequences", "2x2", "context", "crossing"}: oneVariant,
	{"sequences", "4", "context", "crossing"}:   oneVariant,
}
