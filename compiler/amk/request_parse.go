package amk

import (
	"strings"

	"amkc/ir/diag"
)

var (
	requestFields = []string{"shape", "scheme", "tied", "target", "config", "pos", "dtype", "batch", "quant"}
	shapeFields   = []string{
		"vocab", "hidden", "n_layers", "n_heads", "n_kv_heads", "head_dim", "intermediate", "rms_eps", "rope_theta",
		"max_seq",
	}
	quantFields = []string{"bits", "group", "symmetric"}
)

// ParseRequest reads a lowering request. tied, target, config, batch and quant may be absent (false, null, null, 1,
// null); target is a name of LookupTarget. Warnings and errors are as in Parse; whether the request makes sense is for
// Lower to say.
func ParseRequest(data []byte, file string) (Request, diag.List) {
	src := &source{file: file, text: string(data)}
	root, found := src.read()
	if found.diags.Err() != nil {
		return Request{}, found.diags
	}
	l := &loader{source: src, findings: found}
	q := l.request(&root)
	if l.diags.Err() != nil {
		return Request{}, l.diags
	}
	return q, l.diags
}

func (l *loader) request(n *node) Request {
	r := l.record(n, "request", requestFields)
	q := Request{
		Scheme: Scheme(r.str("scheme")),
		Tied:   r.boolOr("tied", false),
		Pos:    r.int("pos"),
		DType:  DType(r.enum("dtype", dtypeNames)),
		Batch:  r.intOr("batch", 1),
	}
	if s := r.must("shape"); s != nil {
		q.Shape = l.shape(s)
	}
	if t := r.find("target"); t != nil && t.kind != nullNode {
		q.Target = r.namedTarget(t)
	}
	if c := r.find("config"); c != nil && c.kind != nullNode {
		q.Config = l.config(c)
	}
	if z := r.find("quant"); z != nil && z.kind != nullNode {
		zr := l.record(z, "quant", quantFields)
		q.Quant = &Quant{Bits: zr.int("bits"), Group: zr.int("group"), Symmetric: zr.boolOr("symmetric", true)}
	}
	if q.Tied && q.Scheme == SchemeToy {
		l.warnf(codeInert, r.find("tied").off, `"tied" has no effect on scheme %q, which has its own lm_head.weight`,
			q.Scheme)
	}
	return q
}

func (l *loader) shape(n *node) Shape {
	r := l.record(n, "shape", shapeFields)
	return Shape{
		Vocab:        r.int("vocab"),
		Hidden:       r.int("hidden"),
		NLayers:      r.int("n_layers"),
		NHeads:       r.int("n_heads"),
		NKVHeads:     r.int("n_kv_heads"),
		HeadDim:      r.int("head_dim"),
		Intermediate: r.int("intermediate"),
		RMSEps:       r.number("rms_eps").Float64(),
		RopeTheta:    r.number("rope_theta").Float64(),
		MaxSeq:       r.int("max_seq"),
	}
}

func (r record) namedTarget(n *node) *Target {
	name := r.strAt(n, "target", "")
	t, ok := LookupTarget(name)
	if !ok && n.kind == stringNode {
		r.errorf(codeEnum, n.off, "%s: unknown target %q; accepted are %s", r.what, name,
			strings.Join(targetNames(), ", "))
	}
	return &t
}
