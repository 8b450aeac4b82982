package main

import (
	"context"
	"syscall"
	"time"
)

// soak asks 5,000 times a second for long, while 10,000 keys are replaced every
// second and the metrics are read.
func (b *bench) soak(ctx context.Context) (sample, error) {
	return b.measure(ctx, b.variant(reload10k), loads[0], b.long, nil)
}

// stallTime is how long the responder is stopped.
const stallTime = 500 * time.Millisecond

// stall stops the responder in the middle of 5,000 checks a second: they queue.
func (b *bench) stall(ctx context.Context) (sample, error) {
	return b.measure(ctx, b.variant(responder), loads[0], 3, func(srv *server) error {
		time.Sleep(time.Second)
		pid := srv.pid
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(stallTime)
		return syscall.Kill(pid, syscall.SIGCONT)
	})
}
