package infile

// A Kind is a kind of file that is read as a whole, and how large one may be.
type Kind struct {
	Name string // in errors, with its article: "a tokenizer.json"
	Max  int64  // bytes
}

// The kinds of files, each with several times the size of the largest one that is published or that amkc writes.
var (
	ModelConfig = Kind{"a JSON file of a model",
		16 << 20} // config.json and its like; a large one has a megabyte, of labels
	Index        = Kind{"an index of shards", 32 << 20} // 9 MB for a mixture of 256 experts in 61 layers
	Tokenizer    = Kind{"a tokenizer.json", 128 << 20}  // 33 MB for a vocabulary of 262,144
	ChatTemplate = Kind{"a chat template", 16 << 20}
	Program      = Kind{"a program", 128 << 20} // some 50 MB for an unrolled model of 70B
	Schedule     = Kind{"a ScheduleConfig", 16 << 20}
	Manifest     = Kind{"a manifest", 16 << 20}
	Source       = Kind{"a generated source", 64 << 20}
	Module       = Kind{"a module of kernels", 512 << 20}
	Prompt       = Kind{"a prompt", 16 << 20}
	HubRef       = Kind{"a revision of a hub", 1 << 20}
	GoModule     = Kind{"a file of a Go module", 64 << 20}
)
