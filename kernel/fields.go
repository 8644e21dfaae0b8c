package kernel

// A Field is a constant of the descriptor of a body's stages.
type Field struct {
	Name, Note string
	// At points to its value in a stage: an *int, a *bool or a *float64.
	At       func(s *Stage) any
	Positive bool // it counts what is there: 1 or more
	Most     int  // 0: no bound of its own
	// Wants describes the accepted values if the value is not one of them; nil: any value of its type is accepted.
	Wants func(f *Facts, s *Stage) string
	// Default is the value that descriptors omit; nil: none is omitted.
	Default any
	// If reports whether a descriptor has the constant. The first constant of an optional group Opens it: it is present
	// if the group is.
	If    func(s *Stage) *bool
	Opens bool
	// Says returns the note if it depends on the stage; nil: Note is used.
	Says func(s *Stage) string
}

func of[T int | bool | float64](name, note string, at func(s *Stage) *T) Field {
	return Field{Name: name, Note: note, At: func(s *Stage) any { return at(s) }}
}

func count(name, note string, at func(s *Stage) *int) Field {
	f := of(name, note, at)
	f.Positive = true
	return f
}

func (f Field) unless(value any) Field {
	f.Default = value
	return f
}

func (f Field) atMost(n int) Field {
	f.Most = n
	return f
}

func (f Field) wants(want string, unless func(f *Facts, s *Stage) bool) Field {
	f.Wants = func(facts *Facts, s *Stage) string {
		if unless(facts, s) {
			return ""
		}
		return want
	}
	return f
}

func (f Field) when(is func(s *Stage) *bool) Field {
	f.If = is
	return f
}

func (f Field) opens(is func(s *Stage) *bool) Field {
	f.If, f.Opens = is, true
	return f
}

func (f Field) says(of func(s *Stage) string) Field {
	f.Says = of
	return f
}

// Fields that several bodies have.
var (
	rows  = count("kRows", "", func(s *Stage) *int { return &s.Rows })
	grain = count("kGrain", "rows per grain", func(s *Stage) *int { return &s.Grain }).
		wants("whole tiles of 8 rows", func(_ *Facts, s *Stage) bool { return s.Grain%8 == 0 })
	units = count("kUnits", "", func(s *Stage) *int { return &s.Units }).atMost(1 << 16)

	rotation     = of("kRotation", "SMs by which the work is shifted", func(s *Stage) *int { return &s.Rotation })
	rotationStep = of("kRotationStep", "added in each layer", func(s *Stage) *int { return &s.Step })
	tasks        = of("kTasks", "", func(s *Stage) *int { return &s.Tasks }).says(func(s *Stage) string {
		if s.Signal == "" {
			return "publishes nothing"
		}
		return "producers of " + s.Signal
	})

	// The heads of the stage's layer, where layers differ in them (HeadsOf of heads.cuh).
	ownHeads = count("kHeads", "of its layers", func(s *Stage) *int { return &s.Heads }).when(ownsHeads).
			wants(ofLayers, func(f *Facts, s *Stage) bool { return !s.OwnHeads || s.Heads == f.Heads })
	ownKVHeads = count("kKVHeads", "", func(s *Stage) *int { return &s.KVHeads }).when(ownsHeads).
			wants(ofLayers, func(f *Facts, s *Stage) bool { return !s.OwnHeads || s.KVHeads == f.KVHeads })
	ownHeadDim = count("kHeadDim", "elements of one", func(s *Stage) *int { return &s.HeadDim }).when(ownsHeads).
			wants(ofLayers, func(f *Facts, s *Stage) bool { return !s.OwnHeads || s.HeadDim == f.HeadDim })

	holds = count("kHolds", "keeps what is read next, as this", func(s *Stage) *int { return &s.Holds }).
		unless(0).atMost(MostHeld)
	readsHeld = count("kReadsHeld", "reads what was kept as this", func(s *Stage) *int { return &s.ReadsHeld }).
			unless(0).atMost(MostHeld)

	normEps    = of("kNormEps", "", func(s *Stage) *float64 { return &s.Eps })
	unitOffset = of("kUnitOffset", "times 1 + weight", func(s *Stage) *bool { return &s.UnitOffset })
	tableScale = of("kScale", "of the table's rows", scale).opens(func(s *Stage) *bool { return &s.Scaled })
	parts      = count("kParts", "that the branch is the sum of", func(s *Stage) *int { return &s.Parts }).unless(1).
			atMost(maxParts)
)

// MostHeld bounds the exchanges that are kept at once: kMostHeld of context.cuh.
const MostHeld = 4

// maxParts bounds the parts of a branch.
const maxParts = 64

func scale(s *Stage) *float64 { return &s.Scale }

const ofLayers = "what its layers have"

func ownsHeads(s *Stage) *bool { return &s.OwnHeads }
