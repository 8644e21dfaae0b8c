package main

import (
	"slices"
	"time"
)

// passLatency is how long passes took, in microseconds per token on the host's clock, and whether they became slower. A
// tenth is a tenth of the passes, at least one.
type passLatency struct {
	First      float64 `json:"first"`
	Last       float64 `json:"last"`
	Median     float64 `json:"median"`
	Longest    float64 `json:"longest"`
	FirstTenth float64 `json:"first_tenth"` // the median of the first tenth
	LastTenth  float64 `json:"last_tenth"`
	// by which a token became slower per hour: the slope of the line of least squares
	PerHour float64 `json:"per_hour"`
}

// A passClock takes the times of passes.
type passClock struct {
	start, begun time.Time
	at, us       []float64 // of each pass: hours since the first began, and microseconds per token
}

func (c *passClock) begin() {
	c.begun = time.Now()
	if c.start.IsZero() {
		c.start = c.begun
	}
}

func (c *passClock) end(tokens int) {
	c.add(c.begun.Sub(c.start), time.Since(c.begun), tokens)
}

func (c *passClock) add(at, took time.Duration, tokens int) {
	c.at = append(c.at, at.Hours())
	c.us = append(c.us, float64(took.Nanoseconds())/1000/float64(tokens))
}

// elapsed is the time since the first pass began.
func (c *passClock) elapsed() time.Duration {
	if c.start.IsZero() {
		return 0
	}
	return time.Since(c.start)
}

// latency sums the passes up; there must be one.
func (c *passClock) latency() *passLatency {
	n := len(c.us)
	tenth := max(1, n/10)
	return &passLatency{First: c.us[0], Last: c.us[n-1], Median: median(c.us), Longest: slices.Max(c.us),
		FirstTenth: median(c.us[:tenth]), LastTenth: median(c.us[n-tenth:]), PerHour: slope(c.at, c.us)}
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// slope is that of the line of least squares through (x, y), and 0 where all x are the same.
func slope(x, y []float64) float64 {
	var sx, sy float64
	for i := range x {
		sx, sy = sx+x[i], sy+y[i]
	}
	n := float64(len(x))
	var xx, xy float64
	for i := range x {
		dx := x[i] - sx/n
		xx, xy = xx+dx*dx, xy+dx*(y[i]-sy/n)
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}
