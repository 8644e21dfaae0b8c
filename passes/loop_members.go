package passes

import "amkc/ir"

// aliases returns the names that groups give to buffers.
func aliases(p *ir.Program) map[string]string {
	alias := map[string]string{}
	for i := range p.Groups {
		g := &p.Groups[i]
		for k, member := range g.Members {
			alias[resolved(g.Name, g.Index(k))] = member
		}
	}
	return alias
}
