package serve

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// metrics are what /metrics shows, in the text format of Prometheus, version 0.0.4.
type metrics struct {
	mu             sync.Mutex
	requests       map[[2]string]int // by path and status
	answers        map[string]int    // by how they ended
	prompt, cached int               // tokens of prompts, and those of them that were not decoded
	complete       int               // tokens
	embeddings     int
	queued         histogram
	first          histogram
	next           histogram
	whole          histogram
}

// A histogram counts durations, by the bounds that they do not exceed.
type histogram struct {
	bounds []float64 // seconds, rising
	counts []int     // one more than bounds
	sum    float64
}

func newHistogram(bounds ...float64) histogram {
	return histogram{bounds: bounds, counts: make([]int, len(bounds)+1)}
}

func (h *histogram) add(d time.Duration) {
	at, _ := slices.BinarySearch(h.bounds, d.Seconds())
	h.counts[at]++
	h.sum += d.Seconds()
}

func newMetrics() *metrics {
	waits := []float64{0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300}
	return &metrics{requests: map[[2]string]int{}, answers: map[string]int{},
		queued: newHistogram(waits...), first: newHistogram(waits...), whole: newHistogram(waits...),
		next: newHistogram(0.0002, 0.0005, 0.001, 0.002, 0.004, 0.006, 0.01, 0.02, 0.05, 0.1, 0.5, 1),
	}
}

// admitted counts a prompt that is decoded, after it has waited.
func (m *metrics) admitted(waited time.Duration, tokens, cached int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queued.add(waited)
	m.prompt += tokens
	m.cached += cached
}

func (m *metrics) firstToken(after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first.add(after)
	m.complete++
}

func (m *metrics) nextToken(after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next.add(after)
	m.complete++
}

// embedded counts an input whose hidden state is there.
func (m *metrics) embedded() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.embeddings++
}

// answered counts a request, and how its answers ended; none of one that asked for no completion.
func (m *metrics) answered(path string, status int, finishes []string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[[2]string{path, fmt.Sprint(status)}]++
	for _, finish := range finishes {
		m.answers[finish]++
	}
	if len(finishes) > 0 {
		m.whole.add(took)
	}
}

// write prints all metrics.
func (m *metrics) write(w io.Writer, running, waiting int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head := func(name, kind, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, help, kind) }
	value := func(name, kind, help string, n int) {
		head(name, kind, help)
		fmt.Fprintf(w, "%s %d\n", name, n)
	}
	head("amkc_http_requests_total", "counter", "Requests by path and status.")
	for _, key := range slices.SortedFunc(maps.Keys(m.requests), func(a, b [2]string) int {
		return slices.Compare(a[:], b[:])
	}) {
		fmt.Fprintf(w, "amkc_http_requests_total{path=%q,status=%q} %d\n", key[0], key[1], m.requests[key])
	}
	head("amkc_completions_total", "counter", "Answers by how they ended.")
	for _, finish := range slices.Sorted(maps.Keys(m.answers)) {
		fmt.Fprintf(w, "amkc_completions_total{finish=%q} %d\n", finish, m.answers[finish])
	}
	value("amkc_prompt_tokens_total", "counter", "Tokens of prompts.", m.prompt)
	value("amkc_cached_tokens_total", "counter", "Tokens of prompts whose rows the cache had.", m.cached)
	value("amkc_completion_tokens_total", "counter", "Tokens that were chosen.", m.complete)
	value("amkc_embeddings_total", "counter", "Inputs whose embeddings were computed.", m.embeddings)
	value("amkc_requests_running", "gauge", "Answers that are being decoded.", running)
	value("amkc_requests_waiting", "gauge", "Answers that wait for the engine.", waiting)
	for _, h := range []struct {
		name, help string
		histogram
	}{
		{"amkc_queue_seconds", "From the request to the engine.", m.queued},
		{"amkc_first_token_seconds", "From the request to the first token.", m.first},
		{"amkc_next_token_seconds", "From a token to the next of the same sequence.", m.next},
		{"amkc_completion_seconds", "From the request to the end of the answer.", m.whole},
	} {
		head(h.name, "histogram", h.help)
		total := 0
		for i, bound := range h.bounds {
			total += h.counts[i]
			fmt.Fprintf(w, "%s_bucket{le=\"%g\"} %d\n", h.name, bound, total)
		}
		total += h.counts[len(h.bounds)]
		fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%[1]s_sum %[3]g\n%[1]s_count %[2]d\n", h.name, total, h.sum)
	}
}
