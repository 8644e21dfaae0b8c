package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A passer sends a request to each server in turn, and to the other where one refuses it or the connection, as nginx
// does with deploy/nginx.conf.
type passer struct {
	servers [2]string
	turn    atomic.Int64
	passed  atomic.Int64 // to the other
}

func (p *passer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	first := p.turn.Add(1)
	for try := range int64(2) {
		to := p.servers[(first+try)%2] + r.URL.Path
		answer, err := http.Post(to, "application/json", bytes.NewReader(body))
		if err == nil && answer.StatusCode != http.StatusServiceUnavailable {
			w.WriteHeader(answer.StatusCode)
			_, _ = io.Copy(w, answer.Body)
			answer.Body.Close()
			return
		}
		if err == nil {
			answer.Body.Close()
		}
		p.passed.Add(1)
	}
	w.WriteHeader(http.StatusBadGateway)
}

// Two servers that are restarted one after the other lose no request, and change no text: what they have accepted they
// answer, and what they refuse the other one takes. scripts/rolling_restart.py does the same with nginx, containers and
// systemd.
func TestRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	var servers [2]*serving
	p := &passer{}
	for i := range servers {
		servers[i] = startServing(t, served, "-q")
		p.servers[i] = servers[i].url
	}
	proxy := httptest.NewServer(p)
	defer proxy.Close()
	ids := regexp.MustCompile(`"(id|created)": ?("[^"]*"|\d+)|"cached_tokens": ?\d+`)
	ask := func(kind int) (status int, body string) {
		status, body = post(t, proxy.URL+"/v1/completions", fmt.Sprintf(`{"prompt": "def f%d(", "max_tokens": 12,
			"seed": 3, "n": %d, "stream": %t}`, kind/2, 1+kind/2, kind%2 == 1))
		return status, ids.ReplaceAllString(body, "")
	}
	const kinds = 4
	var want [kinds]string
	for kind := range kinds {
		_, want[kind] = ask(kind)
	}
	var stop atomic.Bool
	var answered atomic.Int64
	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() {
			for kind := i; !stop.Load(); kind++ {
				status, body := ask(kind % kinds)
				if kind%kinds%2 == 1 { // the events of two answers come in any order
					assert.Equal(t, 200, status, body)
					assert.Contains(t, body, "[DONE]")
					assert.Len(t, body, len(want[kind%kinds]))
				} else {
					assert.Equal(t, want[kind%kinds], body)
				}
				answered.Add(1)
			}
		})
	}
	for i, s := range servers {
		for before := answered.Load(); answered.Load() < before+6; {
			time.Sleep(10 * time.Millisecond)
		}
		require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
		_, _ = io.Copy(io.Discard, s.stdout)
		require.NoError(t, s.cmd.Wait(), s.stderr)
		at, err := url.Parse(s.url)
		require.NoError(t, err)
		servers[i] = startServing(t, served, "-q", "--port", at.Port())
		require.Equal(t, s.url, servers[i].url)
	}
	stop.Store(true)
	clients.Wait()
	require.Positive(t, p.passed.Load(), "requests that the other server took")
	t.Logf("%d answers, %d sent on to the other server", answered.Load(), p.passed.Load())
}
