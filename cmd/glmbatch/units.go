package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Figures for people. Files and JSON have the plain integers.

// bytesText scales by thousands, as disks and memory bandwidths are sold.
func bytesText(n int64) string { return scaled(float64(n), " B", " kB", " MB", " GB", " TB") }

// countText scales a count of parameters: M is a million, B a billion.
func countText(n int64) string { return scaled(float64(n), "", " k", " M", " B", " T") }

func scaled(v float64, units ...string) string {
	i := 0
	for math.Abs(v) >= 999.5 && i < len(units)-1 {
		v /= 1000
		i++
	}
	switch {
	case i == 0:
		return strconv.FormatFloat(v, 'f', -1, 64) + units[0]
	case v < 10:
		return fmt.Sprintf("%.2f%s", v, units[i])
	case v < 100:
		return fmt.Sprintf("%.1f%s", v, units[i])
	}
	return fmt.Sprintf("%.0f%s", v, units[i])
}

// digits groups a whole number by thousands.
func digits(n int64) string {
	s := strconv.FormatInt(n, 10)
	first := len(s) % 3
	if n < 0 {
		first = (len(s)-1)%3 + 1
	}
	out := s[:first]
	for i := first; i < len(s); i += 3 {
		if out != "" && out != "-" {
			out += ","
		}
		out += s[i : i+3]
	}
	return out
}

// parseBytes reads a size as people write it: 500MB, 5GB, 2GiB, 4096.
func parseBytes(s string) (int64, error) {
	units := []struct {
		suffix string
		bytes  float64
	}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1}}
	text := strings.ToUpper(strings.TrimSpace(s))
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v > 0) || v*u.bytes > 1<<62 {
			break
		}
		return int64(v * u.bytes), nil
	}
	return 0, fmt.Errorf("%q is not a size: write 500MB, 5GB or 2GiB", s)
}
