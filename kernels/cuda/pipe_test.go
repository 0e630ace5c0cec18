//go:build cuda

package cuda

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

// bare is a rank without buffers, on a thread of its own, with n bytes on its GPU
// and as many of pinned memory.
func bare(t *testing.T, n int64) (d *device, gpu uintptr, host []byte) {
	t.Helper()
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	ds, err := Open(1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	t.Cleanup(func() { ds[0].Close(); runtime.UnlockOSThread() })
	d = ds[0].(*device)
	if err := d.use(); err != nil {
		t.Fatal(err)
	}
	if gpu, err = d.malloc(n); err != nil {
		t.Fatal(err)
	}
	if host, err = driver.Pinned(int(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cu.MemFree(cu.DevicePtr(gpu)); driver.FreePinned(host) })
	return d, gpu, host
}

// TestHostCopyCopies: words go to the GPU and come back as they are, and nothing beside
// them is written.
func TestHostCopyCopies(t *testing.T) {
	const most, edge = plan.CopyBytes, 64
	d, gpu, host := bare(t, most+2*edge)
	all := uintptr(unsafe.Pointer(&host[0]))
	for _, words := range []int32{1, 31, 256, 257, 1023, 1024, 1025, plan.CopyBytes/4 - 1, plan.CopyBytes / 4} {
		for _, at := range []uintptr{0, 4, edge} {
			copied := host[at : at+uintptr(4*words)]
			for i := range copied {
				copied[i] = byte(i*7 + i>>8 + int(words))
			}
			sent := slices.Clone(copied)
			if err := driver.Set(gpu, 0xAB, most+2*edge, d.stream); err != nil {
				t.Fatal(err)
			}
			if err := d.copy(plan.Copy{From: all + at, To: gpu + edge, Words: words, In: true}); err != nil {
				t.Fatal(err)
			}
			if err := driver.Sync(d.stream); err != nil {
				t.Fatal(err)
			}
			clear(host)
			if err := d.copy(plan.Copy{From: gpu, To: all, Words: words + 2*edge/4}); err != nil {
				t.Fatal(err)
			}
			if err := driver.Sync(d.stream); err != nil {
				t.Fatal(err)
			}
			end := edge + 4*int(words)
			if !slices.Equal(host[edge:end], sent) {
				t.Errorf("%d words from %d on are others", words, at)
			}
			for i, b := range slices.Concat(host[:edge], host[end:end+edge]) {
				if b != 0xAB {
					t.Fatalf("%d words from %d on: byte %d beside them is %#x", words, at, i, b)
				}
			}
			if slices.ContainsFunc(host[end+edge:], func(b byte) bool { return b != 0 }) {
				t.Errorf("%d words: there are more than came", words+2*edge/4)
			}
		}
	}
}

// TestHostCopyStamps: of the ends that a call's blocks left in several places the last one
// counts, and the places of the calls that were asked for are ready for the next list.
func TestHostCopyStamps(t *testing.T) {
	const plane = maxStamped * stampBytes
	d, gpu, host := bare(t, stampEnds*plane)
	out := make([]byte, 24*maxStamped)
	for _, calls := range []int32{1, 2, 85, 86, 1000, maxStamped} {
		word := func(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
		want := make([]uint64, 3*calls)
		for s := range stampEnds {
			for i := range 3 * maxStamped {
				v := ^uint64(0) - uint64(i) // what no stamp is: the other places have only ends
				if s == 0 || i%3 == 1 {
					v = uint64(i)*1000 + uint64((i+5*s)%stampEnds)<<40
				}
				binary.LittleEndian.PutUint64(host[s*plane+8*i:], v)
				if i < len(want) && (s == 0 || i%3 == 1) {
					want[i] = max(want[i], v)
				}
			}
		}
		before := slices.Clone(host)
		if err := driver.ToDevice(gpu, host, d.stream); err != nil {
			t.Fatal(err)
		}
		if err := driver.Sync(d.stream); err != nil {
			t.Fatal(err)
		}
		clear(host)
		if err := d.copy(plan.Copy{Stamps: gpu, Out: uintptr(unsafe.Pointer(&host[0])), Calls: calls}); err != nil {
			t.Fatal(err)
		}
		if err := driver.Sync(d.stream); err != nil {
			t.Fatal(err)
		}
		copy(out, host)
		for i, v := range want {
			if got := word(out, i); got != v {
				t.Fatalf("%d calls: stamp %d of call %d is %#x, want %#x", calls, i%3, i/3, got, v)
			}
		}
		if n := len(out) / 8; int(3*calls) < n && word(out, int(3*calls)) != 0 {
			t.Errorf("%d calls: there is more than came", calls)
		}
		if err := driver.ToHost(host, gpu, d.stream); err != nil {
			t.Fatal(err)
		}
		if err := driver.Sync(d.stream); err != nil {
			t.Fatal(err)
		}
		for s := range stampEnds {
			for i := range 3 * maxStamped {
				want := word(before[s*plane:], i)
				if i < int(3*calls) && (s == 0 || i%3 == 1) {
					want = 0
					if i%3 == 0 {
						want = ^uint64(0)
					}
				}
				if got := word(host[s*plane:], i); got != want {
					t.Fatalf("%d calls: word %d of place %d is left as %#x, want %#x", calls, i, s, got, want)
				}
			}
		}
	}
}
