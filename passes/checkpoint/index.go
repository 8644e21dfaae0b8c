package checkpoint

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// openShards opens the shards that the index names, and proves that index and shards hold exactly the same tensors.
func openShards(dir string) (_ []*File, err *diag.Diagnostic) {
	weightMap, err := readIndex(dir)
	if err != nil {
		return nil, err
	}
	shards := slices.Compact(slices.Sorted(maps.Values(weightMap)))
	var missing []string
	for _, shard := range shards {
		if !isThere(dir, shard) {
			missing = append(missing, shard)
		}
	}
	if len(missing) > 0 {
		return nil, diag.Errorf(codeShardMissing, indexName, "%s of %d missing from the directory",
			plural(len(missing), "shard"), len(shards)).With(firstFew("missing:", missing)...)
	}

	var files []*File
	defer func() {
		if err != nil {
			for _, f := range files {
				f.region.close()
			}
		}
	}()
	for _, shard := range shards {
		f, err := openFile(filepath.Join(dir, shard))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, compareIndex(weightMap, files)
}

// readIndex returns weight_map of the index of a directory: tensor name to shard.
func readIndex(dir string) (map[string]string, *diag.Diagnostic) {
	document, err := readDocument(dir, indexName, infile.Index)
	switch {
	case err != nil:
		return nil, err
	case document == nil:
		return nil, diag.Errorf(codeRead, indexName, "the file has disappeared")
	}
	return parseIndex(document.Object)
}

// parseIndex returns weight_map: tensor name to shard.
func parseIndex(index *Object) (map[string]string, *diag.Diagnostic) {
	value, ok := index.Get("weight_map")
	if !ok {
		return nil, diag.Errorf(codeIndex, indexName, "weight_map is missing")
	}
	object, ok := value.(*Object)
	if !ok || len(object.Keys()) == 0 {
		return nil, diag.Errorf(codeIndex, indexName+": weight_map",
			"an object that maps tensors to shards is needed, and not an empty one")
	}
	weightMap := make(map[string]string, len(object.Keys()))
	for _, tensor := range object.Keys() {
		value, _ := object.Get(tensor)
		shard, ok := value.(string)
		if !ok {
			return nil, diag.Errorf(codeIndex, tensorPos(indexName, tensor), "the shard is %s; a file name is needed",
				kindOf(value))
		}
		if shard != filepath.Base(shard) || !filepath.IsLocal(shard) || shard == "." {
			return nil, diag.Errorf(codeIndex, tensorPos(indexName, tensor),
				"the shard %q is not a plain file name; shards lie beside the index", shard)
		}
		weightMap[tensor] = shard
	}
	return weightMap, nil
}

// compareIndex reports the first kind of disagreement with all tensors that it concerns.
func compareIndex(weightMap map[string]string, files []*File) *diag.Diagnostic {
	held := make(map[string]string, len(weightMap)) // tensor to the shard that has it
	var extra []string
	for _, f := range files {
		for _, e := range f.header.entries {
			if other, twice := held[e.Name]; twice {
				return diag.Errorf(codeDuplicateTensor, tensorPos(f.name, e.Name), "also stored in %s", other)
			}
			held[e.Name] = f.name
			switch shard, listed := weightMap[e.Name]; {
			case !listed:
				extra = append(extra, fmt.Sprintf("%s in %s, not listed", e.Name, f.name))
			case shard != f.name:
				extra = append(extra, fmt.Sprintf("%s in %s, listed in %s", e.Name, f.name, shard))
			}
		}
	}
	var missing []string
	for _, tensor := range slices.Sorted(maps.Keys(weightMap)) {
		if _, ok := held[tensor]; !ok {
			missing = append(missing, fmt.Sprintf("%s, listed in %s", tensor, weightMap[tensor]))
		}
	}
	switch {
	case len(missing) > 0:
		return diag.Errorf(codeIndexMissing, indexName, "%s not in the shards", plural(len(missing), "listed tensor")).
			With(firstFew("missing:", missing)...)
	case len(extra) > 0:
		return diag.Errorf(codeIndexExtra, indexName, "%s that the index does not list there",
			plural(len(extra), "tensor")).
			With(firstFew("tensor", extra)...)
	}
	return nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
