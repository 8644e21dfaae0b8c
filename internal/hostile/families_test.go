package hostile

import (
	"fmt"
	"slices"
	"strings"

	"amkc/validate"
	"amkc/validate/kernel"
)

// A family is one way of making amkc work hard. Files of those that grow are of about the size asked for; the others
// are a few lines whose numbers are just below a budget, or far above it.
type family struct {
	name string
	make func(size int) []byte
}

// hostileSize is the size of a hostile file.
const hostileSize = 10 << 20

// jsonFamilies are attacks in both JSON forms.
var jsonFamilies = []family{
	{"json nested", func(size int) []byte {
		return []byte(`{"ir_version":"2.0","x":` + strings.Repeat("[", size) + `}`)
	}},
	{"json of empty arrays", func(size int) []byte {
		return []byte(`{"ir_version":"2.0","buffers":[` + strings.Repeat("[],", size/3) + `[]]}`)
	}},
	{"json fields", func(size int) []byte {
		s := list(size, func(i int) string { return fmt.Sprintf(`"f%d":0`, i) })
		return []byte(`{"ir_version":"2.0","config":{"tiling":{"x":{` + s + `}}}}`)
	}},
	{"json field again", func(size int) []byte {
		s := list(size, func(int) string { return `"f":0` })
		return []byte(`{"ir_version":"2.0","config":{"tiling":{"x":{` + s + `}}}}`)
	}},
	{"json escapes", func(size int) []byte {
		return []byte(`{"ir_version":"2.0","model":{"name":"` + strings.Repeat(`\u00e9`, size/6) + `"}}`)
	}},
	{"json operands", func(size int) []byte {
		s := list(size, func(int) string { return `"%x"` })
		return []byte(`{"ir_version":"2.0","model":{"max_seq":1},"buffers":[],"variants":[{"name":"v","lo":0,"hi":0,` +
			`"counters":[],"body":[
 {"stage":"s","dist":{"kind":"whole","extent":1},"ops":[{"op":"ATTENTION_COMBINE","out":["%y"],"in":[` + s + `]}],` +
			`"signal":"c"}]}]}`)
	}},
	{"profile nested", func(size int) []byte { return profile(`"x":`+strings.Repeat("[", size), "", "", "") }},
	{"profile of numbers", func(size int) []byte {
		return profile(`"x":[0`+strings.Repeat(",0", size/2)+"]", "", "",
			"")
	}},
	{"profile of empty objects", func(size int) []byte {
		return profile(`"x":[{}`+strings.Repeat(",{}", size/3)+"]", "",
			"", "")
	}},
	{"profile of small objects", func(size int) []byte {
		return profile(`"x":[{"":0}`+strings.Repeat(`,{"":0}`, size/7)+"]", "", "", "")
	}},
	{"profile unknown keys", func(size int) []byte {
		s := list(size, func(i int) string { return fmt.Sprintf(`"k%d":0`, i) })
		return profile("", `{`+s+`}`, "", "")
	}},
	{"profile key again", func(size int) []byte {
		s := list(size, func(int) string { return `"k":0` })
		return profile(s, "", "", "")
	}},
	{"profile wrong types", func(size int) []byte {
		return profile("", "0"+strings.Repeat(",0", min(size/2, 1_500_000)), "", "")
	}},
	{"profile missing fields", func(size int) []byte {
		return profile("", "", "", "{}"+strings.Repeat(",{}", min(size/3, 1_500_000)))
	}},
	{"profile number", func(size int) []byte { return profile(`"x":`+strings.Repeat("7", size), "", "", "") }},
	{"profile float", func(size int) []byte { return profile(`"x":0.`+strings.Repeat("7", size), "", "", "") }},
	{"profile one name", func(size int) []byte {
		s := list(size, func(i int) string {
			return fmt.Sprintf(`{"id":%d,"name":"x","kind":"ACTIVATION","dtype":"F32","shape":[1],"space":"HBM"}`, i)
		})
		return profile("", s, "", "")
	}},
	{"profile names that collide", func(size int) []byte {
		s := list(size, func(i int) string {
			name := "x" + strings.Repeat("#0", i%120)
			return fmt.Sprintf(`{"id":%d,"name":"%s","kind":"ACTIVATION","dtype":"F32","shape":[1],"space":"HBM"}`, i*0,
				name)
		})
		return profile("", s, "", "")
	}},
	{"profile buffers", func(size int) []byte {
		s := list(size, func(i int) string {
			return fmt.Sprintf(`{"id":%d,"name":"b%d","kind":"ACTIVATION","dtype":"F32","shape":[1],"space":"HBM"}`, i,
				i)
		})
		return profile("", s, "", "")
	}},
	{"profile chain", profileChain},
	{"profile independent", profileIndependent},
	{"profile recipe", func(size int) []byte {
		s := list(size, func(i int) string {
			return fmt.Sprintf(`{"op":1,"args":[{"in":0}],"out":%d}`, i)
		})
		return profile(`"pos":0`, `{"id":0,"name":"x","kind":"IO_INPUT","dtype":"F32","shape":[4],"space":"HBM"},`+
			`{"id":1,"name":"y","kind":"IO_OUTPUT","dtype":"F32","shape":[4],"space":"HBM"}`,
			`{"id":0}`, `{"id":0,"op":"FUSED","inputs":[0],"outputs":[1],"out_counter":0,"params":{"recipe":{"steps":[`+
				s+`]}}}`)
	}},
	{"profile queues", func(size int) []byte {
		return profile("", "", `{"id":0}`, `{"id":0,"op":"NOP","inputs":[],"outputs":[],"out_counter":0,`+
			`"sm":4000000000000}`)
	}},
}

// profileBuffer is buffer i of a program whose first buffer is an input.
func profileBuffer(i int) string {
	kind := "ACTIVATION"
	if i == 0 {
		kind = "IO_INPUT"
	}
	return fmt.Sprintf(`{"id":%d,"name":"b%d","kind":"%s","dtype":"F32","shape":[4],"space":"HBM"}`, i, i, kind)
}

// profileChain is a program whose tasks wait for each other one by one, each a read and a write of a buffer of its own.
func profileChain(size int) []byte {
	n := size / 290
	buffers := items(n+1, profileBuffer)
	counters := items(n, func(i int) string { return fmt.Sprintf(`{"id":%d}`, i) })
	tasks := items(n, func(i int) string {
		wait := ""
		if i > 0 {
			wait = fmt.Sprintf(`{"counter":%d,"threshold":1}`, i-1)
		}
		return fmt.Sprintf(`{"id":%d,"op":"COPY","inputs":[%d],"outputs":[%d],"out_counter":%d,"waits":[%s],`+
			`"params":{}}`, i, i, i+1, i, wait)
	})
	return profile(`"pos":0`, buffers, counters, tasks)
}

// profileIndependent is a program whose tasks nothing orders: every task is a chain of its own.
func profileIndependent(size int) []byte {
	n := size / 200
	tasks := items(n, func(i int) string {
		return fmt.Sprintf(`{"id":%d,"op":"COPY","inputs":[0],"outputs":[%d],"out_counter":0,"waits":[],"params":{}}`,
			i, i+1)
	})
	return profile(`"pos":0`, items(n+1, profileBuffer), `{"id":0}`, tasks)
}

// An attack is a family and the backend that its files are proved for.
type attack struct {
	family
	backend validate.Backend
}

func attacks() []attack {
	var all []attack
	for _, f := range slices.Concat(jsonFamilies, textFamilies, carryFamilies, proofFamilies, walkFamilies) {
		all = append(all, attack{f, validate.Reference})
	}
	for _, f := range kernelFamilies {
		all = append(all, attack{f, kernel.Backend})
	}
	return all
}
