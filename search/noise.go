package search

import (
	"math"
)

// An Interval is an estimate and its 95 % confidence interval.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Sample is one opening's worth of interleaved measurements at a position: medians in microseconds per token, one per
// round. Baseline and Twin are the same build, opened twice. A screening has no twin, and no band.
type Sample struct {
	Candidate, Baseline, Twin []float64
}

// Compared is the result of Compare: the ratio at each position and over all positions, and the difference of identical
// builds.
type Compared struct {
	At  []Interval
	All Interval
	// Band is the largest distance from 1 of the interval of the twin over the baseline, at any position.
	Band float64
	// Spread is the largest difference of baseline and twin in one opening, at any position.
	Spread float64
}

// Compare compares candidate and baseline. samples[position][opening] are measurements; the baseline's time is the
// geometric mean of its own and its twin's.
//
// The openings are the independent samples: the addresses of weights and cache change a time by up to 2 % and stay the
// same until a build is reopened, so more rounds of one opening only repeat its error. The interval is that of
// Student's t over openings. With a single opening it is 0 to infinity. The same interval is used for twins, because a
// single opening does not show the error of a mean of several.
func Compare(samples [][]Sample) (c Compared) {
	openings := 0
	for _, position := range samples {
		openings = max(openings, len(position))
	}
	sums, counts := make([]float64, openings), make([]int, openings)
	for _, position := range samples {
		var logs, twins []float64
		for k, s := range position {
			base := meanLog(s.Baseline)
			twin := base
			if len(s.Twin) > 0 {
				twin = meanLog(s.Twin)
				twins = append(twins, twin-base)
				c.Spread = max(c.Spread, math.Expm1(math.Abs(twin-base)))
			}
			log := meanLog(s.Candidate) - (base+twin)/2
			logs = append(logs, log)
			sums[k] += log
			counts[k]++
		}
		c.At = append(c.At, interval(logs))
		if len(twins) > 0 {
			of := interval(twins)
			c.Band = max(c.Band, of.High-1, 1-of.Low)
		}
	}
	means := make([]float64, openings)
	for k := range means {
		means[k] = sums[k] / float64(counts[k])
	}
	c.All = interval(means)
	return c
}

func meanLog(times []float64) float64 {
	sum := 0.0
	for _, t := range times {
		sum += math.Log(t)
	}
	return sum / float64(len(times))
}

// interval is that of Student's t for the mean of logarithms, as ratios.
func interval(logs []float64) Interval {
	n := float64(len(logs))
	mean, squares := 0.0, 0.0
	for _, l := range logs {
		mean += l / n
	}
	for _, l := range logs {
		squares += (l - mean) * (l - mean)
	}
	if len(logs) < 2 {
		return Interval{math.Exp(mean), 0, math.MaxFloat64}
	}
	half := student(len(logs)-1) * math.Sqrt(squares/(n-1)/n)
	return Interval{math.Exp(mean), math.Exp(mean - half), min(math.Exp(mean+half), math.MaxFloat64)}
}

// student is the 97.5 % point of Student's t distribution.
func student(freedom int) float64 {
	points := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
		2.145,
		2.131, 2.120, 2.110, 2.101, 2.093, 2.086}
	if freedom <= len(points) {
		return points[freedom-1]
	}
	return 1.96 + 2.5/float64(freedom) // within 0.2 % from 21 on
}
