package dialogue

import (
	"bufio"
	"errors"
	"io"
)

// maxLine bounds a message, in bytes: no context has room for more.
const maxLine = 4 << 20

// lines are read by a goroutine of their own, so that waiting for one can be interrupted.
type lines struct {
	next chan string // closed after the last line
	err  error       // of reading; to be looked at when next is closed
	done chan struct{}
}

func readLines(in io.Reader) *lines {
	l := &lines{next: make(chan string), done: make(chan struct{})}
	go func() {
		defer close(l.next)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			select {
			case l.next <- scanner.Text():
			case <-l.done:
				return
			}
		}
		if l.err = scanner.Err(); errors.Is(l.err, bufio.ErrTooLong) {
			l.err = &Error{"a line is longer than 4 MiB; a message is one line"}
		}
	}()
	return l
}

// stop ends the goroutine when it next has a line; what it waits for in between is the input's business.
func (l *lines) stop() { close(l.done) }
