//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorgonia.org/cu"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/kerneltest"
	"glmbatch/kernels/ranks"
)

// Every way to exchange messages gives the same bits as the others and as
// additions in the ranks' order. Some want a GPU a rank.
func TestCollectives(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	gpus, err := cu.NumDevices()
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range Collectives() {
		t.Run(string(way), func(t *testing.T) {
			kerneltest.Messages(t, func(t testing.TB, n int) []kernels.Device {
				if n > gpus && (way == ViaNCCL || way == ViaHost && gpus > 1) {
					t.Skipf("%d ranks on %d GPUs", n, gpus)
				}
				ds, err := Open(n, Options{Collective: way, StepTimeout: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				return ds
			}, 64<<20)
		})
	}
}

// A rank that hangs ends the list on all ranks, which wait for it, in time and
// with its error.
func TestHungRank(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	const limit, n = time.Second, 4
	ds, err := Open(n, Options{StepTimeout: limit, Fault: Fault{Kind: Hang, Rank: 2, List: 3}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := ranks.New(ds, ranks.Options{Lock: true})
	if err != nil {
		t.Fatal(err)
	}
	call := kernels.Call{Kernel: "all_reduce_norm", Dims: kernels.Dims{M: 1, N: 6144, Ranks: n}}
	for range 4 {
		buf, err := g.Alloc(4*6144, kernels.Sharded)
		if err != nil {
			t.Fatal(err)
		}
		call.Args = append(call.Args, buf)
	}
	list := slices.Repeat([]kernels.Call{call}, 20)
	for i := range 3 {
		if err := g.Run(list, nil); err != nil {
			t.Fatalf("list %d: %v", i, err)
		}
	}
	start := time.Now()
	err = g.Run(list, nil)
	if took := time.Since(start); took > 2*limit {
		t.Errorf("the list ended after %v, limit %v", took, limit)
	}
	t.Log(err)
	if !errors.Is(err, kernels.ErrDevice) || errors.Is(err, kernels.ErrPeer) ||
		!strings.Contains(fmt.Sprint(err), "rank 2") {
		t.Errorf("the error does not tell: %v", err)
	}
	if err := g.Run(list, nil); err == nil {
		t.Error("the group still runs")
	}
	if err := g.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	time.Sleep(2 * limit) // the kernel that hangs ends, for the next test
}

// Ranks that wait for each other's hosts do not wait for ever.
func TestMeetingIsBounded(t *testing.T) {
	g := &group{ranks: make([]*device, 3), options: Options{StepTimeout: 50 * time.Millisecond}}
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		wg.Go(func() { errs[i] = g.meet(nil) })
	}
	wg.Wait()
	for _, err := range errs {
		if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(fmt.Sprint(err), "1 of 3 ranks") {
			t.Errorf("error is %v", err)
		}
	}
	if g.ended() == nil {
		t.Error("the group goes on")
	}
}

// An error that one rank brings is every rank's, and the next round is clean.
func TestMeeting(t *testing.T) {
	g := &group{ranks: make([]*device, 3), options: Options{StepTimeout: time.Minute}}
	broken := errors.New("broken")
	for round, bring := range [][]error{{nil, broken, nil}, {nil, nil, nil}} {
		var wg sync.WaitGroup
		errs := make([]error, 3)
		for i := range errs {
			wg.Go(func() { errs[i] = g.meet(bring[i]) })
		}
		wg.Wait()
		for i, err := range errs {
			if want := bring[1]; !errors.Is(err, want) {
				t.Errorf("round %d, rank %d: %v, want %v", round, i, err, want)
			}
		}
	}
}

func TestPlacement(t *testing.T) {
	for _, c := range []struct {
		ranks, gpus, per int
		want             []int // nil: there is no place
	}{
		{1, 8, 0, []int{0}},
		{2, 8, 0, []int{0, 1}},
		{8, 1, 0, []int{0, 0, 0, 0, 0, 0, 0, 0}},
		{8, 4, 0, []int{0, 0, 1, 1, 2, 2, 3, 3}},
		{8, 3, 0, []int{0, 0, 0, 1, 1, 1, 2, 2}},
		{4, 4, 2, []int{0, 0, 1, 1}},
		{8, 2, 3, nil},
	} {
		got, err := placement(c.ranks, c.gpus, c.per)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%d ranks on %d GPUs, %d each: %v, %v; want %v", c.ranks, c.gpus, c.per, got, err, c.want)
		}
	}
}

// What a rank's kernels say of their waits, and the host's word to stop.
func TestVerdict(t *testing.T) {
	fresh := func() *group {
		return &group{ranks: make([]*device, 4), words: make([]byte, 4096),
			options: Options{StepTimeout: 4 * time.Second}}
	}
	g := fresh()
	if err := g.verdict(1); err != nil || g.ended() != nil {
		t.Errorf("without a word: %v", err)
	}
	if !g.halt() || g.halt() || *g.word(0) != 1 {
		t.Error("the second to tell is the first")
	}
	*g.word(1 + 1) = 0xFFFFFFFF
	if err := g.verdict(1); !errors.Is(err, kernels.ErrPeer) || !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("a rank that was told to stop: %v", err)
	}
	broken := errors.New("broken")
	if err := g.fail(broken); err != broken {
		t.Errorf("the rank that failed has %v", err)
	}
	if err := g.verdict(1); !errors.Is(err, kernels.ErrPeer) || !errors.Is(err, broken) {
		t.Errorf("a rank that was stopped by another's error: %v", err)
	}
	g = fresh()
	*g.word(1 + 3) = 1 + 2
	if err := g.verdict(3); !errors.Is(err, kernels.ErrDevice) || errors.Is(err, kernels.ErrPeer) ||
		!strings.Contains(err.Error(), "rank 3 waited for rank 2") {
		t.Errorf("a rank that waited too long: %v", err)
	}
	if *g.word(0) != 1 || g.ended() == nil {
		t.Error("the others go on")
	}
}
