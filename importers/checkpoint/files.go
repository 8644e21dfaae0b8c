package checkpoint

import (
	"path/filepath"
	"slices"

	"amkc/runtime/infile"
)

// Files lists the paths of the files of a model directory that amkc or transformers read: the configuration, the
// tokenizer, chat templates, and weights with the shards that an index names. They need not exist.
//
// Of a GGUF file they are it and the other parts that it is split into.
func Files(dir string) []string {
	if IsGGUF(dir) {
		return ggufFiles(dir)
	}
	names := []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
		"special_tokens_map.json",
		"chat_template.jinja", adapterConfig, adapterTensors, QuantisedFile, singleName, indexName}
	templates, _ := infile.List(filepath.Join(dir, "additional_chat_templates"))
	for _, t := range templates {
		names = append(names, filepath.Join("additional_chat_templates", t.Name()))
	}
	if index, err := readIndex(dir); err == nil {
		for _, shard := range index {
			names = append(names, shard)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}
