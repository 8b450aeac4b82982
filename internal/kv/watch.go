package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	dep "github.com/hashicorp/consul-template/dependency"
	"github.com/hashicorp/consul-template/watch"
)

// WatchConfig says what is watched.
type WatchConfig struct {
	Root    string        // KV root
	Address string        // of Consul, for people
	List    ListFunc      // see [Config.Lister]
	Quiet   time.Duration // least time from an answer to the next read; none follows one that was held that long and is unchanged
	MaxKeys int           // most keys that are accepted, besides the sentinel; 0: any number
	ID      string        // that the sentinel must have until another one is expected; "": any
	// Observe is called after each read, from the goroutine that reads: err is
	// nil if it was accepted; changed says that it brought something new.
	Observe func(err *ReadError, changed bool, took time.Duration)
}

// Health is how reading goes. Times are zero until it happened.
type Health struct {
	Contact    time.Time  // last answer of any kind
	Accepted   time.Time  // last accepted read
	Generation uint64     // of the last accepted read, see [Read]; 0 before it
	Failure    *ReadError // why the last read was not accepted; nil if it was
	Since      time.Time  // of the first failure in a row with that reason
}

// A Watch follows the state prefix by the watcher of consul-template, through a
// dependency that accepts nothing that it cannot believe.
type Watch struct {
	source  *source
	changed chan struct{}
}

// NewWatch returns a watch that reads once [Watch.Run] runs, and not after ctx
// ends.
func NewWatch(ctx context.Context, cfg WatchConfig) *Watch {
	w := &Watch{changed: make(chan struct{}, 1)}
	w.source = newSource(ctx, cfg, w.notify)
	return w
}

// Changed says that Health or Latest may have changed. It is a level trigger:
// it holds at most one notice. Each read gives one, also without news.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Health returns how reading goes now.
func (w *Watch) Health() Health { return *w.source.health.Load() }

// Latest returns the last read that brought news; nil before the first. It may
// be one generation ahead of Health for a moment.
func (w *Watch) Latest() *Read { return w.source.latest.Load() }

// Release forgets the keys of read, which nobody needs any more: they take more
// memory than all else.
func (w *Watch) Release(read *Read) {
	rest := *read
	rest.Pairs = nil
	w.source.latest.CompareAndSwap(read, &rest)
}

// Dependency is the name of the data for a template's brain.
func (w *Watch) Dependency() dep.Dependency { return w.source }

// ExpectAny lets the next read have any sentinel id, and makes it news even if
// it brings what the last one brought.
func (w *Watch) ExpectAny() {
	w.source.expect.Store(new(string))
	w.source.again.Store(true)
}

// Run reads until the context of [NewWatch] ends, and returns when nothing
// reads any more: nil, or an error if the library stops by itself.
func (w *Watch) Run() error {
	// The client set is empty: the source has a client of its own, and a full
	// set would start to renew a VAULT_TOKEN of the environment.
	watcher := watch.NewWatcher(&watch.NewWatcherInput{Clients: dep.NewClientSet(), BlockQueryWaitTime: Wait})
	if _, err := watcher.Add(w.source); err != nil {
		w.source.Stop()
		return fmt.Errorf("watching %s: %w", w.source, err)
	}
	err := w.relay(watcher)
	watcher.Stop()
	w.source.join()
	return err
}

func (w *Watch) relay(watcher *watch.Watcher) error {
	for {
		select {
		case <-w.source.ctx.Done():
			return nil
		case view := <-watcher.DataCh():
			if _, ok := view.Data().(uint64); !ok {
				return errors.New("consul-template delivered something else than was read")
			}
			w.notify()
		// The source reports its failures itself and returns none: these two
		// are for what the library may find wrong.
		case err := <-watcher.ErrCh():
			return fmt.Errorf("watching %s: %w", w.source, err)
		case err := <-watcher.ServerErrCh():
			return fmt.Errorf("watching %s: %w", w.source, err)
		}
	}
}

func (w *Watch) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
