package roofline

import "golang.org/x/sys/cpu"

//go:noescape
func readAVX2(p *byte, n int)

//go:noescape
func fmaAVX2(n int)

//go:noescape
func fmaAVX512(n int)

// probes returns what this CPU runs fastest.
func probes() probe {
	p := plainProbe
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		p.read = func(b []byte) { readAVX2(&b[0], len(b)) }
		p.multiply, p.flops = fmaAVX2, 12*8*2
	}
	if cpu.X86.HasAVX512F {
		p.multiply, p.flops = fmaAVX512, 12*16*2
	}
	return p
}
