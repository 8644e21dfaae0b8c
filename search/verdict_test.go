package search

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
	"amkc/knobs"
)

// checked is a check that passed.
func checked() *Correctness {
	same := true
	return &Correctness{Oracle: "reference kernels", Passed: true, Spans: []Span{{Last: 100, Deterministic: &same}}}
}

// passing is a verdict that is PASS.
func passing(settings, baseline knobs.Settings, ratio float64) *Verdict {
	i := Interval{ratio, ratio * 0.999, ratio * 1.001}
	v := &Verdict{Schema: VerdictSchema, Rung: Final, Class: Pass,
		Subject: Subject{ID: IDOf(settings), Settings: settings, BaselineID: IDOf(baseline), Baseline: baseline,
			Model: "toy", Source: "s", Target: "h200", Device: DeviceCUDA, Positions: []int{0}},
		Proof: &Proof{OK: true, Findings: diag.List{}}, Correctness: checked(),
		Timing: &Timing{Ratio: i, Machine: "a GPU", At: []At{{Candidate: Times{100 * ratio, 99 * ratio, 101 * ratio},
			Baseline: Times{100, 99, 101}, Ratio: i, Ceiling: 10, Bytes: 1e6, ReadGBs: 4000}}}}
	rules := DefaultRules()
	rules.Decide(v)
	return v
}

func marshalled(t *testing.T, v *Verdict) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

func TestSignatures(t *testing.T) {
	private := keyOf("k")
	key, other := private.Public(), keyOf("o").Public()
	v := passing(knobs.Settings{"tiling.ring.pace": "700"}, knobs.Settings{}, 0.9)
	require.ErrorContains(t, key.Check(v), "has no signature")
	private.Sign(v)
	require.NoError(t, key.Check(v))
	require.ErrorContains(t, other.Check(v), "is signed with the key "+key.String()[:8])
	text := marshalled(t, v)
	back, err := ParseVerdict(text, "v.json")
	require.NoError(t, err)
	require.NoError(t, key.Check(back))
	require.Equal(t, string(text), string(marshalled(t, back)), "a verdict is the same when it is read and written")

	// Every field that is changed shows.
	for old, new := range map[string]string{`"median":90`: `"median":80`, `"decision":"keep"`: `"decision":"revert"`,
		`"machine":"a GPU"`: `"machine":"another"`, `"band":0`: `"band":0.5`, `"position":0`: `"position":1`,
		`"rung":"final"`: `"rung":"screen"`} {
		require.Contains(t, string(text), old)
		forged, err := ParseVerdict([]byte(strings.Replace(string(text), old, new, 1)), "v.json")
		require.NoError(t, err, old)
		require.ErrorContains(t, key.Check(forged), "something in it was changed", old)
	}

	// A signature has one spelling, and only the holder of the private key makes one.
	by, signature, _ := strings.Cut(v.Signature, ":")
	for _, forged := range []string{by, by + ":", by + ":" + strings.ToUpper(signature), by + ":" + signature[2:],
		by + ":" + signature + "00", by + ":x" + signature[1:], by + ":" + strings.Repeat("0", 128)} {
		again := *v
		again.Signature = forged
		require.ErrorContains(t, key.Check(&again), "something in it was changed", forged)
	}
	for _, forged := range []string{strings.ToUpper(by) + ":" + signature, other.String() + ":" + signature,
		signature, "x"} {
		again := *v
		again.Signature = forged
		require.ErrorContains(t, key.Check(&again), "is signed with the key", forged)
	}
	again := *v
	again.Signature = other.String() + ":" + signature
	require.ErrorContains(t, other.Check(&again), "something in it was changed")
}

func TestWhatIsNoVerdict(t *testing.T) {
	whole := passing(knobs.Settings{}, knobs.Settings{}, 0.9)
	toyKey.Sign(whole)
	text := string(marshalled(t, whole))
	for want, bad := range map[string]string{
		"is not a verdict":           `{"latency_us": 12`,
		"unknown":                    strings.Replace(text, `"schema"`, `"latency_us":12,"schema"`, 1),
		"has the schema":             strings.Replace(text, "amkc.verdict/3", "amkc.verdict/9", 1),
		"of an earlier amkc; want":   strings.Replace(text, "amkc.verdict/3", "amkc.verdict/2", 1),
		"names its settings":         strings.Replace(text, `"settings":{}`, `"settings":{"tiling.ring.pace":1}`, 1),
		"has no proof":               strings.Replace(text, `"ok":true`, `"ok":false`, 1),
		"times belong to what is PA": strings.Replace(text, `"PASS"`, `"FAIL"`, 1),
		"is of the class":            strings.Replace(text, `"PASS"`, `"FINE"`, 1),
		"no correctness that passed": strings.Replace(text, `"passed":true`, `"passed":false`, 1),
		"of the device cost":         strings.Replace(text, `"PASS"`, `"PREDICTED"`, 1),
	} {
		_, err := ParseVerdict([]byte(bad), "v.json")
		require.ErrorContains(t, err, want)
	}
	failed := &Verdict{Schema: VerdictSchema, Class: Fail, Subject: whole.Subject, Decision: Keep,
		Reason: diag.Errorf(codeNoVerdict, "x", "y")}
	_, err := ParseVerdict(marshalled(t, failed), "v.json")
	require.ErrorContains(t, err, "is FAIL, which is reverted")
}
