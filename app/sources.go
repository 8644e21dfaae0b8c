// Package app contains the applications that run a model, in amkc and in every launcher: the command line,
// conversations and the editor of their messages, the server, batches, the C and Python library, reports. It only
// embeds their sources, which every launcher carries.
package app

import "embed"

// Files are the sources of the packages below.
//
//go:embed chrometrace/*.go cli/*.go editor/*.go engine/*.go front/*.go report/*.go report/*.html dialogue/*.go
//go:embed prompts/*.go serve/*.go serve/page/*.html serve/page/*.css serve/page/*.js
//go:embed serve/page/marked/*.js
//go:embed library/*.go library/capi/*.go library/capi/*.h library/capi/*.c library/example/*.c
//go:embed library/shared/*.go
//go:embed python/LICENSE python/*.py python/pyproject.toml python/amk/*.py python/amk/py.typed
var Files embed.FS
