package amk

// Marshal writes the program as AutoMegaKernel does, byte for byte, without a newline at the end. What Parse has read
// comes back with the defaults filled in and unknown keys gone.
func (p *Program) Marshal() []byte {
	w := &writer{}
	w.open('{')
	w.str("ir_version", p.IRVersion)
	w.str("abi_version", p.ABIVersion)
	w.key("meta")
	w.object(&p.Meta)
	w.key("target")
	w.target(p.Target)
	w.key("buffers")
	array(w, p.Buffers, w.buffer)
	w.key("counters")
	array(w, p.Counters, w.counter)
	w.key("tasks")
	array(w, p.Tasks, w.task)
	w.key("pages")
	w.pages(p.Pages)
	w.key("config")
	w.config(p.Config)
	w.close('}')
	return w.buf
}

func (w *writer) str(name, s string) {
	w.key(name)
	w.quote(s)
}

func (w *writer) num(name string, n int) {
	w.key(name)
	w.int(n)
}

func (w *writer) numeric(name string, n Number) {
	w.key(name)
	w.number(n)
}

func (w *writer) flag(name string, b bool) {
	w.key(name)
	w.bool(b)
}

func (w *writer) ints(name string, list []int) {
	w.key(name)
	array(w, list, w.int)
}

func (w *writer) target(t *Target) {
	if t == nil {
		w.null()
		return
	}
	w.open('{')
	w.str("name", t.Name)
	w.num("sm_arch", t.SMArch)
	w.num("num_sms", t.NumSMs)
	w.num("smem_bytes_per_sm", t.SmemBytesPerSM)
	w.num("smem_bytes_per_block_optin", t.SmemBytesPerBlockOptin)
	w.num("regs_per_sm", t.RegsPerSM)
	w.num("max_threads_per_sm", t.MaxThreadsPerSM)
	w.num("max_regs_per_thread", t.MaxRegsPerThread)
	w.num("l2_bytes", t.L2Bytes)
	w.num("hbm_bytes", t.HBMBytes)
	w.numeric("hbm_bandwidth_gbs", t.HBMBandwidthGBs)
	w.numeric("fp16_tflops", t.FP16TFLOPS)
	w.numeric("clock_ghz", t.ClockGHz)
	w.flag("supports_cooperative", t.SupportsCooperative)
	w.flag("wddm_tdr", t.WDDMTDR)
	w.numeric("measured_bw_gbs", t.MeasuredBWGBs)
	w.str("note", t.Note)
	w.close('}')
}

func (w *writer) buffer(b Buffer) {
	w.open('{')
	w.num("id", b.ID)
	w.str("name", b.Name)
	w.str("kind", b.Kind.String())
	w.str("dtype", b.DType.String())
	w.ints("shape", b.Shape)
	w.str("space", b.Space.String())
	w.key("source")
	if b.Source != nil {
		w.quote(*b.Source)
	} else {
		w.null()
	}
	w.close('}')
}

func (w *writer) counter(c Counter) {
	w.open('{')
	w.num("id", c.ID)
	w.num("init", c.Init)
	w.str("note", c.Note)
	w.close('}')
}

func (w *writer) task(t Task) {
	w.open('{')
	w.num("id", t.ID)
	w.str("op", t.Op.String())
	w.ints("inputs", t.Inputs)
	w.ints("outputs", t.Outputs)
	w.num("out_counter", t.OutCounter)
	w.key("waits")
	array(w, t.Waits, func(wait Wait) {
		w.open('{')
		w.num("counter", wait.Counter)
		w.num("threshold", wait.Threshold)
		w.close('}')
	})
	w.key("params")
	w.object(&t.Params)
	w.key("sm")
	if t.SM != nil {
		w.int(*t.SM)
	} else {
		w.null()
	}
	w.numeric("est_bytes", t.EstBytes)
	w.numeric("est_flops", t.EstFLOPs)
	w.str("label", t.Label)
	w.close('}')
}

func (w *writer) pages(p *Pages) {
	if p == nil {
		w.null()
		return
	}
	w.open('{')
	w.key("buffer_to_page")
	w.intMap(&p.BufferToPage)
	w.key("pages")
	array(w, p.Pages, func(page Page) {
		w.open('{')
		w.num("id", page.ID)
		w.str("space", page.Space.String())
		w.num("nbytes", page.NBytes)
		w.num("live_start", page.LiveStart)
		w.num("live_end", page.LiveEnd)
		w.close('}')
	})
	w.close('}')
}

func (w *writer) config(c *Config) {
	if c == nil {
		w.null()
		return
	}
	w.open('{')
	w.key("tiling")
	w.object(&c.Tiling)
	w.key("fusion_grouping")
	array(w, c.FusionGrouping, func(group []string) { array(w, group, w.quote) })
	w.key("sm_assignment")
	if c.SMAssignment.Explicit != nil {
		w.intMap(c.SMAssignment.Explicit)
	} else {
		w.quote(c.SMAssignment.Policy)
	}
	w.num("pipelining_depth", c.PipeliningDepth)
	w.str("page_allocation", c.PageAllocation)
	w.num("threads_per_block", c.ThreadsPerBlock)
	w.num("smem_bytes_per_block", c.SmemBytesPerBlock)
	w.close('}')
}
