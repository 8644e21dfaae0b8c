package checkpoint

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// openShards opens the shards that the index names, and returns their tensors: exactly those that it lists, each from
// the shard where it lists it. warning says which tensors are stored in other shards too; nil: none is.
func openShards(dir string) (files []*File, tensors []Tensor, warning, err *diag.Diagnostic) {
	weightMap, err := readIndex(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	shards := slices.Compact(slices.Sorted(maps.Values(weightMap)))
	var missing []string
	for _, shard := range shards {
		if !isThere(dir, shard) {
			missing = append(missing, shard)
		}
	}
	if len(missing) > 0 {
		return nil, nil, nil, diag.Errorf(codeShardMissing, indexName, "%s of %d missing from the directory",
			plural(len(missing), "shard"), len(shards)).With(firstFew("missing:", missing)...)
	}

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
			return files, nil, nil, err
		}
		files = append(files, f)
	}
	tensors, warning, err = chooseTensors(weightMap, files)
	return files, tensors, warning, err
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
				"the shard %q is not a plain file name; shards are next to the index", shard)
		}
		weightMap[tensor] = shard
	}
	return weightMap, nil
}

// A copied tensor is in a shard in which the index does not list it.
type copied struct {
	Tensor
	shard string
}

// chooseTensors returns the tensors that the index lists, from the shards that it names, and a warning of copies of
// them in other shards, nil where there is none. It reports the first kind of disagreement with all tensors that it
// concerns.
func chooseTensors(weightMap map[string]string, files []*File) (chosen []Tensor, warning, err *diag.Diagnostic) {
	listed := make(map[string]Tensor, len(weightMap)) // those that are where the index lists them
	held := map[string]bool{}                         // those that are anywhere
	var elsewhere []copied
	for _, f := range files {
		for _, t := range f.Tensors() {
			held[t.Name] = true
			if weightMap[t.Name] == f.name {
				listed[t.Name] = t
				chosen = append(chosen, t)
			} else {
				elsewhere = append(elsewhere, copied{t, f.name})
			}
		}
	}
	var missing, extra []string
	for _, tensor := range slices.Sorted(maps.Keys(weightMap)) {
		if !held[tensor] {
			missing = append(missing, fmt.Sprintf("%s, listed in %s", tensor, weightMap[tensor]))
		}
	}
	for _, t := range elsewhere {
		if shard, known := weightMap[t.Name]; !known {
			extra = append(extra, fmt.Sprintf("%s in %s, not listed", t.Name, t.shard))
		} else if _, ok := listed[t.Name]; !ok {
			extra = append(extra, fmt.Sprintf("%s in %s, listed in %s", t.Name, t.shard, shard))
		}
	}
	switch {
	case len(missing) > 0:
		return nil, nil, diag.Errorf(codeIndexMissing, indexName, "%s not in the shards",
			plural(len(missing), "listed tensor")).With(firstFew("missing:", missing)...)
	case len(extra) > 0:
		return nil, nil, diag.Errorf(codeIndexExtra, indexName, "%s that the index does not list there",
			plural(len(extra), "tensor")).With(firstFew("tensor", extra)...)
	case len(elsewhere) > 0:
		warning, err = warnOfCopies(weightMap, listed, elsewhere)
	}
	return chosen, warning, err
}

// warnOfCopies says of each copy whether it differs from what is read in its place.
func warnOfCopies(weightMap map[string]string, listed map[string]Tensor, copies []copied) (warning,
	err *diag.Diagnostic) {
	notes := make([]string, len(copies))
	for i, t := range copies {
		same, err := t.SameBits(listed[t.Name])
		if err != nil {
			return nil, diag.Errorf(codeRead, t.shard, "cannot read: %s", infile.Reason(err))
		}
		with := "other values"
		if same {
			with = "the same bits"
		}
		notes[i] = fmt.Sprintf("%s in %s, listed in %s: %s", t.Name, t.shard, weightMap[t.Name], with)
	}
	return diag.Warningf(codeDuplicateTensor, indexName, "%s stored in another shard too; read is what the index lists",
		plural(len(copies), "tensor")).With(firstFew("copy of", notes)...), nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
