package dialogue

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a channel with a value for each Ctrl-C, and a context that a request to end (SIGTERM) cancels and
// Ctrl-C does not, until stop is called.
func Signals(ctx context.Context) (conversation context.Context, interrupts <-chan os.Signal, stop func()) {
	relay := make(chan os.Signal, 1)
	signal.Notify(relay, os.Interrupt)
	conversation, end := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	return conversation, relay, func() {
		signal.Stop(relay)
		end()
	}
}
