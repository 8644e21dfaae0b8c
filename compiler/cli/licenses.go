package cli

import (
	"amkc/codegen/notices"
	"amkc/runtime"
)

func licensesVerb() verb {
	return verb{
		name:    "licenses",
		summary: "print the license of amkc, and those of what it contains",
		details: "amkc is licensed under Apache-2.0. So is what it emits, all but the model: each build has the\n" +
			"files LICENSE and " + notices.File + ".",
		run: func(c *call) error {
			c.payload = struct {
				License string `json:"license"` // SPDX identifier
				Text    string `json:"text"`
				Notices string `json:"third_party_notices"`
			}{"Apache-2.0", string(runtime.License()), notices.Amkc}
			return c.printf("%s\n%s", runtime.License(), notices.Amkc)
		},
	}
}
