package importer

import (
	"regexp"
	"strconv"
	"strings"
)

// Sizes of copies from their launch grid: ATen's elementwise kernels launch one
// thread for every 2, 4, 8 or 16 values, so numel <= grid.x * block.x * unroll
// with less than a block to spare.

var (
	unrollPattern = regexp.MustCompile(`(vectorized_elementwise_kernel|elementwise_kernel_manual_unroll|(?:^|[ :])elementwise_kernel)<(\d{1,4})(?:, (\d{1,3}))?`)
	lambdaType    = regexp.MustCompile(`\{lambda\(([A-Za-z_][A-Za-z0-9_:<> ]*)\)#\d+\}`)
)

// valueBytes are the sizes of C++ types in kernel names.
var valueBytes = map[string]int64{
	"c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8, "long": 8, "int": 4, "short": 2, "bool": 1,
	"unsigned char": 1, "signed char": 1, "char": 1, "unsigned short": 2, "unsigned int": 4, "unsigned long": 8,
	"c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1,
}

// copySize is what a copy kernel's name says of its values.
type copySize struct {
	unroll  int64 // values of a thread
	in, out int64 // bytes of a value; 0: the name does not say
}

// sizeOfCopy reads the name of a copying or casting elementwise kernel.
func sizeOfCopy(name string) (c copySize, ok bool) {
	switch {
	case strings.Contains(name, "unrolled_elementwise_kernel<"):
		c.unroll = 4
	default:
		m := unrollPattern.FindStringSubmatch(name)
		if m == nil {
			return c, false
		}
		n := m[2]
		if m[1] != "vectorized_elementwise_kernel" {
			n = m[3] // <threads of a block, values of a thread>
		}
		c.unroll, _ = strconv.ParseInt(n, 10, 64)
	}
	if c.unroll < 1 || c.unroll > 64 {
		return c, false
	}
	lambda := int64(0)
	if m := lambdaType.FindStringSubmatch(name); m != nil {
		lambda = valueBytes[m[1]]
	}
	switch {
	case strings.Contains(name, "bfloat16tofloat32_copy") || strings.Contains(name, "float16tofloat32_copy"):
		c.in, c.out = 2, 4
	case strings.Contains(name, "bfloat16_copy_kernel_cuda"), strings.Contains(name, "float16_copy_kernel_cuda"):
		c.in, c.out = lambda, 2
	case strings.Contains(name, "float8_copy_kernel_cuda"):
		c.in, c.out = lambda, 1
	case strings.Contains(name, "direct_copy_kernel_cuda"):
		c.out = lambda
		if !strings.Contains(name, "LoadWithCast") {
			c.in = lambda
		}
	default:
		return c, false
	}
	return c, true
}

// values returns the most values that a launch can have worked on, and how many
// of them a block takes.
func (c copySize) values(s shape) (numel, perBlock int64) {
	perBlock = int64(s.block[0]) * c.unroll
	return int64(s.grid[0]) * perBlock, perBlock
}

// bytes returns the least memory traffic of numel values.
func (c copySize) bytes(numel int64) int64 { return numel * (max(c.in, 1) + max(c.out, 1)) }

// copySize reads a name's size once.
func (n *names) copySize(id uint32) (copySize, bool) {
	e := &n.list[id]
	if e.sized == 0 {
		e.sized = -1
		if c, ok := sizeOfCopy(e.text); ok {
			e.copy, e.sized = c, 1
		}
	}
	return e.copy, e.sized > 0
}
