package plan

import "testing"

// The panels of rows are found until something writes there.
func TestPanels(t *testing.T) {
	var p panels
	a, b := p.take(1000, 64, 128, 128), p.take(1<<20, 64, 128, 256)
	if i, ok := p.find(1000, 64, 128, 128); !ok || i != a || a == b {
		t.Fatal(p)
	}
	if _, ok := p.find(1000, 63, 128, 128); ok {
		t.Error("found for another number of rows")
	}
	if _, ok := p.find(1000, 64, 128, 256); ok {
		t.Error("found for rows that are further apart")
	}
	p.forget(1<<20+64*256*4-500, 1<<21) // behind the last row's columns
	if _, ok := p.find(1<<20, 64, 128, 256); !ok {
		t.Error("forgot what was not written")
	}
	p.forget(1000+64*128*4-4, 1<<20)
	if _, ok := p.find(1000, 64, 128, 128); ok {
		t.Error("found what was written over")
	}
}

// Parts of many rows are found where they begin with a tile.
func TestPanelsWithin(t *testing.T) {
	var p panels
	p.many = panel{lo: 4096, hi: 4096 + (299*256+128)*4, m: 300, k: 128, ld: 256}
	for _, c := range []struct {
		first, m, k, ld int32
		ok              bool
	}{{0, 300, 128, 256, true}, {0, 17, 128, 256, true}, {128, 172, 128, 256, true}, {128, 173, 128, 256, false},
		{100, 64, 128, 256, false}, {0, 300, 64, 256, false}, {0, 300, 128, 128, false}} {
		if row, ok := p.within(4096+uintptr(c.first*256*4), c.m, c.k, c.ld); ok != c.ok || ok && row != c.first {
			t.Errorf("%+v: row %d, %v", c, row, ok)
		}
	}
	if _, ok := p.within(0, 300, 128, 256); ok {
		t.Error("found rows before the first")
	}
	p.forget(4096+299*256*4, 8192<<10)
	if _, ok := p.within(4096, 300, 128, 256); ok {
		t.Error("found what was written over")
	}
}

// Norms that share a launch do not leave their panels in one place.
func TestPanelsOfOneLaunch(t *testing.T) {
	b := newBuilder(&Target{Architecture: &sm90}, &Memory{})
	b.m.Scratch[ScratchMany] = 4096
	norm := func(y uintptr) uintptr {
		a := rowwiseP{cache: b.leaveMany(y, 300, 128, 128)}
		if err := b.ofRows(opNorm, 300, &a); err != nil {
			t.Fatal(err)
		}
		return a.cache
	}
	found := func(y uintptr) bool { _, ok := b.panels.within(y, 300, 128, 128); return ok }
	if norm(1<<20) != 4096 || norm(1<<21) != 0 || !found(1<<20) || found(1<<21) {
		t.Errorf("%+v", b.panels.many)
	}
	b.segments = b.segments[:0] // launched
	if norm(1<<21) != 4096 || found(1<<20) || !found(1<<21) {
		t.Errorf("%+v in the next launch", b.panels.many)
	}
}

// Products of 128 rows at a time that begin with any tile read no further than there is
// room.
func TestPanelsHaveRoom(t *testing.T) {
	const k = 128
	for m := int32(panelRows + 1); m < 1000; m++ {
		b := newBuilder(&Target{Architecture: &sm90}, &Memory{})
		b.leaveMany(1<<20, m, k, k)
		for row := int32(0); row < m; row += panelTile {
			if end := row + int32(ceil(m-row, 128))*128; int64(end)*k*4 > b.Scratch[ScratchMany] {
				t.Fatalf("%d rows from %d on: up to %d rows are read, there is room for %d bytes", m, row, end,
					b.Scratch[ScratchMany])
			}
		}
	}
}

// A kernel of rows is seen to leave panels whatever its name; embed has its table there.
func TestPanelsAreSeen(t *testing.T) {
	for entry, want := range map[string]uintptr{"add_norm": 4096, "add_norm_made_up": 4096, "embed": 0} {
		l := Launch{Entry: entry, Params: &rowwiseP{cache: 4096}}
		if got := l.Panels(); got != want {
			t.Errorf("%s leaves panels at %d, want %d", entry, got, want)
		}
	}
}
