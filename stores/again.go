package stores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"gocloud.dev/gcerrors"
)

// How long what may pass is tried: in all about two minutes.
const (
	tries     = 12
	firstWait = 50 * time.Millisecond // twice as long each time
	mostWait  = 30 * time.Second
	stall     = 30 * time.Second // without a byte, after which a transfer is begun again
	// Of an upload only what is read of the file is seen, a part at a time: on a slow line
	// parts take their time.
	stallOfParts = 5 * time.Minute
)

// errChanged: an object is another than when it was opened.
var errChanged = errors.New("the object changed while it was read")

// again calls f until it succeeds, or fails for a reason that stays.
func again(ctx context.Context, what string, f func(ctx context.Context) error) error {
	wait := firstWait
	for n := 1; ; n++ {
		err := f(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case missing(err):
			return fmt.Errorf("%s: %w", what, fs.ErrNotExist)
		case permanent(err):
			return fmt.Errorf("%s: %w", what, err)
		case n == tries:
			return fmt.Errorf("%s: after %d tries: %w", what, tries, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait = min(2*wait, mostWait)
	}
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || err != nil && gcerrors.Code(err) == gcerrors.NotFound
}

func permanent(err error) bool {
	if errors.Is(err, errChanged) {
		return true
	}
	switch gcerrors.Code(err) {
	case gcerrors.PermissionDenied, gcerrors.InvalidArgument, gcerrors.Unimplemented, gcerrors.FailedPrecondition,
		gcerrors.AlreadyExists:
		return true
	}
	return false
}

// watch ends ctx when moved has not been called for so long.
func watch(ctx context.Context, stall time.Duration) (_ context.Context, moved func(), stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(stall, func() { cancel(fmt.Errorf("no byte for %v", stall)) })
	return ctx, func() { timer.Reset(stall) }, func() {
		timer.Stop()
		cancel(nil)
	}
}
