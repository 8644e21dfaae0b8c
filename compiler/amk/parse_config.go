package amk

var (
	targetFields = []string{
		"name", "sm_arch", "num_sms", "smem_bytes_per_sm", "smem_bytes_per_block_optin", "regs_per_sm",
		"max_threads_per_sm", "max_regs_per_thread", "l2_bytes", "hbm_bytes", "hbm_bandwidth_gbs", "fp16_tflops",
		"clock_ghz", "supports_cooperative", "wddm_tdr", "measured_bw_gbs", "note",
	}
	pagesFields  = []string{"buffer_to_page", "pages"}
	pageFields   = []string{"id", "space", "nbytes", "live_start", "live_end"}
	configFields = []string{
		"tiling", "fusion_grouping", "sm_assignment", "pipelining_depth", "page_allocation", "threads_per_block",
		"smem_bytes_per_block",
	}
)

func (l *loader) target(n *node) *Target {
	r := l.record(n, "target", targetFields)
	return &Target{
		Name:                   r.name("name"),
		SMArch:                 r.int("sm_arch"),
		NumSMs:                 r.int("num_sms"),
		SmemBytesPerSM:         r.int("smem_bytes_per_sm"),
		SmemBytesPerBlockOptin: r.int("smem_bytes_per_block_optin"),
		RegsPerSM:              r.int("regs_per_sm"),
		MaxThreadsPerSM:        r.int("max_threads_per_sm"),
		MaxRegsPerThread:       r.int("max_regs_per_thread"),
		L2Bytes:                r.int("l2_bytes"),
		HBMBytes:               r.int("hbm_bytes"),
		HBMBandwidthGBs:        r.number("hbm_bandwidth_gbs"),
		FP16TFLOPS:             r.number("fp16_tflops"),
		ClockGHz:               r.numberOr("clock_ghz", Float(0)),
		SupportsCooperative:    r.boolOr("supports_cooperative", true),
		WDDMTDR:                r.boolOr("wddm_tdr", false),
		MeasuredBWGBs:          r.numberOr("measured_bw_gbs", Float(0)),
		Note:                   r.strOr("note", ""),
	}
}

func (l *loader) pages(n *node) *Pages {
	r := l.record(n, "pages", pagesFields)
	p := &Pages{}
	if m := r.must("buffer_to_page"); m != nil {
		if m.kind != objectNode {
			r.mistyped(m, "buffer_to_page", "an object")
		}
		p.BufferToPage = r.intMap(m, "buffer_to_page")
	}
	p.Pages = list(r, r.must("pages"), "pages", l.page)
	return p
}

func (l *loader) page(n *node) Page {
	r := l.record(n, "page", pageFields)
	return Page{
		ID:        r.int("id"),
		Space:     MemSpace(r.enum("space", spaceNames)),
		NBytes:    r.int("nbytes"),
		LiveStart: r.intOr("live_start", -1),
		LiveEnd:   r.intOr("live_end", -1),
	}
}

func (l *loader) config(n *node) *Config {
	r := l.record(n, "config", configFields)
	c := DefaultConfig()
	c.Tiling = r.objectOr("tiling")
	for _, group := range r.arrayAt(r.find("fusion_grouping"), "fusion_grouping", "an array of arrays of op names") {
		items := r.arrayAt(&group, "fusion_grouping", "an array of arrays of op names")
		names := make([]string, len(items))
		for i := range items {
			names[i] = r.nameAt(&items[i], "fusion_grouping", "")
		}
		c.FusionGrouping = append(c.FusionGrouping, names)
	}
	if s := r.find("sm_assignment"); s != nil {
		c.SMAssignment = r.assignment(s)
	}
	c.PipeliningDepth = r.intOr("pipelining_depth", c.PipeliningDepth)
	c.PageAllocation = r.nameOr("page_allocation", c.PageAllocation)
	c.ThreadsPerBlock = r.intOr("threads_per_block", c.ThreadsPerBlock)
	c.SmemBytesPerBlock = r.intOr("smem_bytes_per_block", c.SmemBytesPerBlock)
	return c
}

func (r record) assignment(n *node) SMAssignment {
	switch n.kind {
	case stringNode:
		return SMAssignment{Policy: r.nameAt(n, "sm_assignment", "")}
	case objectNode:
		m := r.intMap(n, "sm_assignment")
		return SMAssignment{Explicit: &m}
	}
	r.mistyped(n, "sm_assignment", "the name of a policy, or an object from task id to SM")
	return SMAssignment{}
}
