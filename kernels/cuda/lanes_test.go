//go:build cuda

package cuda

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"glmbatch/kernels"
)

// Whatever two calls share and one of them writes, the later one comes after the
// earlier: along a lane or through a wait.
func TestPlacesKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buffer := rapid.Custom(func(t *rapid.T) kernels.Buffer {
			off := rapid.Int64Range(0, 3).Draw(t, "offset")
			return kernels.Buffer{Index: rapid.Uint32Range(1, 6).Draw(t, "index"), Offset: off * 64, Len: 64 * rapid.Int64Range(1, 4-off).Draw(t, "len")}
		})
		var calls []kernels.Call
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			k := kernels.Table[rapid.IntRange(0, len(kernels.Table)-1).Draw(t, "kernel")]
			c := kernels.Call{Kernel: k.Name}
			for range k.Args {
				c.Args = append(c.Args, buffer.Draw(t, "buffer"))
			}
			calls = append(calls, c)
		}
		ps := places(calls)
		// before[i] has every call that i comes after.
		before := make([]map[int]bool, len(calls))
		tails := map[int]int{}
		for i, p := range ps {
			before[i] = map[int]bool{}
			direct := slices.Clone(p.after)
			if prev, ok := tails[p.lane]; ok {
				direct = append(direct, prev)
			}
			tails[p.lane] = i
			for _, c := range direct {
				before[i][c] = true
				for b := range before[c] {
					before[i][b] = true
				}
			}
		}
		for i := range calls {
			for j := range i {
				if conflict(&calls[j], &calls[i]) && !before[i][j] {
					t.Fatalf("call %d (%s) does not come after call %d (%s)", i, calls[i].Kernel, j, calls[j].Kernel)
				}
			}
		}
	})
}

func conflict(a, b *kernels.Call) bool {
	for buf, as := range accesses(0, a) {
		for _, x := range as {
			for _, y := range accesses(1, b)[buf] {
				if (x.write || y.write) && x.lo < y.hi && y.lo < x.hi {
					return true
				}
			}
		}
	}
	return false
}
