package cli

import (
	"amkc/codegen"
	"amkc/compiler/version"
	"amkc/ir"
)

func versionVerb() verb {
	return verb{
		name:    "version",
		summary: "print the version of amkc",
		run: func(c *call) error {
			info := version.Get()
			c.payload = info
			text := "amkc " + info.Version
			if source := info.Source(); source != "" {
				text += ", commit " + source
			}
			return c.printf("%s, IR %s, device runtime ABI %d, %s\n", text, ir.Version, codegen.RuntimeABI, info.Go)
		},
	}
}
