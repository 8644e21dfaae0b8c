package report

import (
	"math"
	"strconv"
	"strings"
)

// none stands where there is no number.
const none = "–"

// fixed prints a number with n decimals, and commas between thousands.
func fixed(x float64, decimals int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return none
	}
	text := strconv.FormatFloat(math.Abs(x), 'f', decimals, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	var b strings.Builder
	if x < 0 && strings.Trim(text, "0.") != "" {
		b.WriteString("−")
	}
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}

func count(n int) string { return fixed(float64(n), 0) }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// percent is a share of a whole as a coordinate: "12.34".
func percent(part, whole float64) string {
	if whole <= 0 {
		return "0"
	}
	return strconv.FormatFloat(math.Round(1e4*part/whole)/100, 'f', -1, 64)
}

// A tick is a labelled place on an axis, in percent of its length.
type tick struct{ At, Label string }

// ticks returns some n round values from lo to hi, at distances of 1, 2 or 5 times a power of ten.
func ticks(lo, hi float64, n int) []tick {
	if hi <= lo {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/float64(n))))
	for _, f := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(f*step) <= float64(n) {
			step *= f
			break
		}
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var all []tick
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+1e-9*step; k++ {
		all = append(all, tick{percent(k*step-lo, hi-lo), fixed(k*step, decimals)})
	}
	return all
}
