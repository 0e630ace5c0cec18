//go:build cuda

package cuda

import (
	"slices"
	"unsafe"

	"glmbatch/kernels"
)

// headsRows is the most rows that src/heads.cu is the fastest for.
const headsRows = 256

type headsP struct {
	w, x, y, panels, at                  uintptr
	m, n, k, ldx, ldy, per, xhead, yhead int32
	global                               float32
	whead                                int64
	rope, pos                            uintptr
	nrope                                int32
	act, actAt                           uintptr
	ldact, late                          int32
}

// perHead launches products of few columns for each head, if they are for src/heads.cu.
func (d *device) perHead(a *gemmP, w *weight, blocks int32) (bool, error) {
	if !d.warpgroups || w.format != kernels.BF16 || a.k > gatedColumns || blocks > 1 || a.m <= fewRows || a.m > headsRows || a.k%64 != 0 || a.n%64 != 0 ||
		(a.x|a.y)%16 != 0 || (a.ldx|a.ldy|a.xhead|a.yhead)%4 != 0 {
		return false, nil
	}
	p := headsP{w: a.w, x: a.x, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy, per: int32(ceil(a.k/16, 8)), xhead: a.xhead, yhead: a.yhead,
		global: a.global, whead: a.whead, rope: a.rope, pos: a.pos, nrope: a.nrope}
	shared := 1024 + a.k*64 + a.k*128 + 4*8*128*4 + 16*68*4 + 16
	_, limit, err := d.chip()
	if err != nil || p.per%2 != 0 || shared > limit {
		return false, err
	}
	grid := [3]uint32{uint32(a.n / 64), ceil(a.m, 16), uint32(a.heads)}
	if a.rope != 0 {
		grid[0]++
	} else if a.heads > 1 && a.yhead == a.n {
		p.panels = d.leave(a.y, a.m, a.heads*a.n, a.ldy)
	}
	if d.beside && a.rope != 0 {
		p.late, d.behind = 1, true
	}
	name := "heads_bf16"
	for i := range d.bundle {
		s := (*rowsP)(unsafe.Pointer(&d.bundle[i].params))
		if d.bundle[i].op == opSilu && s.y == a.x && s.m == a.m && s.x%16 == 0 && s.ldx%4 == 0 && a.heads == 1 {
			name, p.x, p.ldx, p.act, p.actAt, p.ldact = "heads_gate_bf16", s.x, s.ldx, s.y, s.at, s.ldy
			d.bundle = slices.Delete(d.bundle, i, i+1)
			break
		}
	}
	return true, d.do(name, grid, 256, uint32(shared), unsafe.Pointer(&p))
}
