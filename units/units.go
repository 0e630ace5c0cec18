package units

import (
	"fmt"
	"math"
	"strconv"

	"github.com/dustin/go-humanize"
)

// Bytes scales by thousands, as disks and memory bandwidths are sold.
func Bytes(n int64) string { return scaled(float64(n), " B", " kB", " MB", " GB", " TB") }

// Count scales a count of parameters: M is a million, B a billion.
func Count(n int64) string { return scaled(float64(n), "", " k", " M", " B", " T") }

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

// Digits groups a whole number by thousands.
func Digits(n int64) string { return humanize.Comma(n) }

// ParseBytes reads a size as people write it: 500MB, 5GB, 2GiB, 4096.
func ParseBytes(s string) (int64, error) {
	n, err := humanize.ParseBytes(s)
	if err != nil || n == 0 || n > 1<<62 {
		return 0, fmt.Errorf("%q is not a size: write 500MB, 5GB or 2GiB", s)
	}
	return int64(n), nil
}

// Figure is a figure with a digit after the point if it is small.
func Figure(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.1f", v)
	}
	return Digits(int64(v + .5))
}
