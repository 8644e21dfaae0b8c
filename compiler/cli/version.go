package cli

import "amkc/compiler/version"

func versionVerb() verb {
	return verb{
		name:    "version",
		summary: "print the version of amkc",
		run: func(c *call) error {
			info := version.Get()
			c.payload = info
			return c.printf("amkc %s\n", info.Version)
		},
	}
}
