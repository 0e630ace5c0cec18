package timeline

import (
	"testing"

	"pgregory.net/rapid"
)

// ticks is the time in which the properties are checked tick by tick.
const ticks = 48

func drawInterval(t *rapid.T) Interval {
	return Interval{Start: rapid.Int64Range(0, ticks).Draw(t, "start"), End: rapid.Int64Range(0, ticks).Draw(t, "end")}
}

func covered(iv []Interval, tick int64) bool {
	for _, v := range iv {
		if v.Start <= tick && tick < v.End {
			return true
		}
	}
	return false
}

func TestUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		iv := rapid.SliceOfN(rapid.Custom(drawInterval), 0, 12).Draw(t, "intervals")
		u := Union(append([]Interval(nil), iv...))
		var length int64
		for i, v := range u {
			if v.End <= v.Start || i > 0 && v.Start <= u[i-1].End {
				t.Fatalf("%v is empty or touches the one before", v)
			}
		}
		for tick := range int64(ticks) {
			if covered(iv, tick) != covered(u, tick) {
				t.Fatalf("tick %d: the union of %v is %v", tick, iv, u)
			}
			if covered(iv, tick) {
				length++
			}
		}
		var all int64
		for _, v := range u {
			all += v.NS()
		}
		if all != length {
			t.Fatalf("length %d, want %d", all, length)
		}
	})
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := Union(rapid.SliceOfN(rapid.Custom(drawInterval), 0, 8).Draw(t, "intervals"))
		span := drawInterval(t)
		at := span.Start
		part := func(in bool) func(Interval) {
			return func(v Interval) {
				if v.Start != at || v.End <= v.Start {
					t.Fatalf("part %v does not follow %d", v, at)
				}
				for tick := v.Start; tick < v.End; tick++ {
					if covered(u, tick) != in {
						t.Fatalf("tick %d of %v: inside is %v", tick, v, in)
					}
				}
				at = v.End
			}
		}
		Cut(span, u, part(true), part(false))
		if at != max(span.Start, span.End) && span.End > span.Start {
			t.Fatalf("parts of %v end at %d", span, at)
		}
	})
}

// The sweep agrees with looking at every tick.
func TestSweep(t *testing.T) {
	var s Sweeper
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Piece {
			v := drawInterval(t)
			return Piece{v.Start, v.End, rapid.Int32Range(0, 3).Draw(t, "key")}
		}), 0, 14).Draw(t, "pieces")
		want := map[int32]int64{}
		first, last := int64(ticks), int64(0)
		for tick := range int64(ticks) {
			running := map[int32]bool{}
			for _, p := range pieces {
				if p.Start <= tick && tick < p.End {
					running[p.Key] = true
					first, last = min(first, tick), tick+1
				}
			}
			switch len(running) {
			case 0:
				want[None]++
			case 1:
				for k := range running {
					want[k]++
				}
			default:
				want[Several]++
			}
		}
		want[None] -= ticks - max(0, last-first) // outside of the first start and the last end
		got := map[int32]int64{}
		at := first
		s.Sweep(pieces, func(start, end int64, key int32) {
			if start != at || end <= start {
				t.Fatalf("stretch [%d, %d) after %d", start, end, at)
			}
			at = end
			got[key] += end - start
		})
		if last > 0 && at != last {
			t.Fatalf("the sweep ends at %d, want %d", at, last)
		}
		for k, ns := range want {
			if got[k] != ns {
				t.Fatalf("key %d: %d ns, want %d", k, got[k], ns)
			}
		}
	})
}
