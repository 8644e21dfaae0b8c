// Package clients asks a server of app/serve what many clients ask at a time, some of whom go away or send what is
// not a request, and compares every answer with the one that the same request gets alone. The tests of app/serve do
// so on the reference VM, and bench/device on a GPU.
//
// It knows the server by its HTTP alone, and must import nothing but the standard library and runtime/infile.
package clients

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Plan says what is asked.
type Plan struct {
	Requests int // at least one for each client
	Clients  int // at a time, each of whom asks one thing after the other
	Seed     uint64
	Prompt   int // tokens that prompts have at most, from 4 on; the model has ids up to 1023
	Tokens   int // of an answer at most, from 7 on
}

// A Report is what came of a plan.
type Report struct {
	Requests   int            `json:"requests"`
	Clients    int            `json:"clients"`
	Answered   int            `json:"answered"`   // to their ends
	Cancelled  int            `json:"cancelled"`  // the client went away, before or during the answer
	Bad        int            `json:"bad"`        // refused, as they should be
	Busy       int            `json:"busy"`       // refusals as the queue was full; the client tries again
	Differing  int            `json:"differing"`  // of the answered ones
	Difference string         `json:"difference"` // the first one, or empty
	First      Times          `json:"first_ms"`   // up to the first byte of an answer, and up to its last one, with
	Whole      Times          `json:"whole_ms"`   // waits for room in the queue
	Statuses   map[string]int `json:"statuses"`   // as the server has counted them
	Findings   []string       `json:"findings"`   // what is not as it should be
}

// Times are in ms.
type Times struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func timesOf(all []time.Duration) Times {
	if len(all) == 0 {
		return Times{}
	}
	slices.Sort(all)
	at := func(n int) float64 { return float64(all[min(len(all)-1, len(all)*n/100)].Microseconds()) / 1000 }
	return Times{at(50), at(99)}
}

// Alone asks everything that a plan may ask, one after the other: what the answers have to be. One that has to have a
// form and does not is an error.
func Alone(ctx context.Context, url string, p Plan) ([]Answer, error) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := &client{plan: p, url: url, http: &http.Client{Transport: transport}}
	want := make([]Answer, questions)
	for i := range want {
		q := p.question(i)
		r, err := c.send(ctx, q.path, q.body(false))
		if err != nil {
			return nil, err
		}
		want[i], err = read(r.Body, q.path, false)
		switch {
		case err != nil:
		case i%kinds == formKind:
			err = checkForm(want[i])
		case i%kinds == toolKind:
			err = checkCall(want[i])
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", q.path, q.body(false), err)
		}
		r.Body.Close()
	}
	return want, nil
}

// Ask runs a plan. want is the result of [Alone]. An error reports that a client could not continue.
func Ask(ctx context.Context, url string, p Plan, want []Answer) (*Report, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: p.Clients}
	defer transport.CloseIdleConnections()
	before, err := counted(ctx, url)
	if err != nil {
		return nil, err
	}
	all, errs := make([]*client, p.Clients), make(chan error, p.Clients)
	var wait sync.WaitGroup
	for i := range all {
		c := &client{plan: p, url: url, http: &http.Client{Transport: transport}, want: want,
			rng: rand.New(rand.NewPCG(p.Seed, uint64(i)))}
		all[i] = c
		wait.Go(func() {
			for range (p.Requests + i) / len(all) {
				if err := c.ask(ctx); err != nil {
					errs <- fmt.Errorf("client %d: %w", i, err)
					return
				}
			}
		})
	}
	wait.Wait()
	select {
	case err := <-errs:
		return nil, err
	default:
	}
	r := &Report{Requests: p.Requests, Clients: p.Clients}
	var first, whole []time.Duration
	for _, c := range all {
		first, whole = append(first, c.first...), append(whole, c.whole...)
		r.Answered += c.answered
		r.Cancelled += c.cancelled
		r.Bad += c.bad
		r.Busy += c.busy
		if r.Differing += c.differing; r.Difference == "" {
			r.Difference = c.difference
		}
	}
	r.First, r.Whole = timesOf(first), timesOf(whole)
	return r, r.judge(ctx, url, before)
}

// patience is how long the server may go on with what nobody waits for.
const patience = 10 * time.Second

// judge compares the counts of the clients with those of the server, which counts a request a little after its answer.
func (r *Report) judge(ctx context.Context, url string, before counts) error {
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		now, err := counted(ctx, url)
		if err != nil {
			return err
		}
		r.Statuses = map[string]int{}
		for status, n := range now.statuses {
			if n -= before.statuses[status]; n > 0 {
				r.Statuses[status] = n
			}
		}
		wrong := r.miscounted(now.busy)
		if len(wrong) == 0 || time.Now().After(until) {
			r.Findings = append(r.misanswered(), wrong...)
			return nil
		}
	}
}

// expected are the statuses of answers, of bad requests, of a queue that is full, and of clients that went away.
var expected = []string{"200", "400", "429", "499"}

// A list of what is not as it should be.
type list []string

func (l *list) must(holds bool, format string, args ...any) {
	if !holds {
		*l = append(*l, fmt.Sprintf(format, args...))
	}
}

// misanswered is what clients have found.
func (r *Report) misanswered() []string {
	var all list
	sum := r.Answered + r.Cancelled + r.Bad
	all.must(r.Differing == 0, "%d answers are not those of the request alone: %s", r.Differing, r.Difference)
	all.must(sum == r.Requests, "%d of %d requests have come to an end", sum, r.Requests)
	all.must(r.Answered > 0 && r.Cancelled > 0 && r.Bad > 0, "%d requests were answered, %d cancelled and %d bad; "+
		"some of each are needed", r.Answered, r.Cancelled, r.Bad)
	return all
}

// miscounted is where the counts of the server are others.
func (r *Report) miscounted(busy int) []string {
	var all list
	must := all.must
	must(busy == 0, "%d requests are being decoded or wait, and all clients have gone", busy)
	must(r.Statuses["400"] == r.Bad, "the server has refused %d requests, and %d were bad", r.Statuses["400"], r.Bad)
	must(r.Statuses["200"] >= r.Answered, "the server has counted %d answers, and %d came", r.Statuses["200"],
		r.Answered)
	must(r.Statuses["429"] >= r.Busy, "the server has found its queue full %d times, and clients %d", r.Statuses["429"],
		r.Busy)
	for status := range r.Statuses {
		must(slices.Contains(expected, status), "the server has answered with status %s", status)
	}
	return all
}
