package validate_test

import (
	"amkc/simulate"
	"amkc/validate"
)

// Indices of which nothing says that the table has such a row.
var indexRemovals = func() []removal {
	const ids = "buffer ids CONST I32 [4] HBM rowmajor\n"
	task := func(says string, lines ...string) removal {
		return removal{code: validate.CodeIndex, says: says, kind: simulate.Index,
			text: ids + stage("t", 0, lines...) + emit(0)}
	}
	next := func(says string, lines ...string) removal {
		embed := stage("t", 0, "%t = EMBED(token[0], table[0:4,0:4])")
		return removal{code: validate.CodeIndex, says: says, kind: simulate.Index,
			text: ids + embed + stage("emit", 0, append(lines, "signal step")...), as: stepwise}
	}
	return []removal{
		task("none of them is one: they come from empty views", "f[0], index[0] = SAMPLE_ARGMAX(in[2:2]) partial=1",
			"%t = SAMPLE_ARGMAX(f[0], index[0])"),
		task("takes ids[0] for a row of table[0:4,0:4], and nothing bounds it: it is ids, a CONST",
			"%t = EMBED(ids[0], table[0:4,0:4])"),
		task("and it may be no index", "f[0], index[0] = SAMPLE_ARGMAX(in[0:4]) partial=1",
			"%t = EMBED(index[0], table[0:4,0:4])"),
		task("which has 3 rows, and it can be 3: t.s000 (sm 0) chooses among 4 values from 0 on; give the table 4 rows",
			"%i = SAMPLE_ARGMAX(in[0:4])", "%t = EMBED(%i, table[0:3,0:4])"),
		next("t.s000 of the next step takes it for a row of table[0:4,0:4], and nothing bounds it: it is ids, a CONST",
			"next[0] = COPY(ids[0])"),
		next("and it may be no index", "f[0], next[0] = SAMPLE_ARGMAX(in[0:4]) partial=1"),
		next("buffer next: error: can be 4, and t.s000 of the next step takes it for a row of "+
			"table[0:4,0:4], which has 4", "f[0], index[0] = SAMPLE_ARGMAX(in[0:4]) partial=1 first=1",
			"next[0] = SAMPLE_ARGMAX(f[0], index[0])"),
	}
}()
