package units

import "testing"

func TestUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.00 kB", 1536: "1.54 kB", 99949: "99.9 kB",
		123456789: "123 MB", 465863664128: "466 GB", 5e15: "5000 TB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999999: "-999,999",
		1234567: "1,234,567"} {
		if got := Digits(n); got != want {
			t.Errorf("Digits(%d) = %q, want %q", n, got, want)
		}
	}
	for s, want := range map[string]int64{"4096": 4096, "500MB": 500e6, "5 gb": 5e9, "2GiB": 2 << 30, "1.5kB": 1500,
		"7B": 7} {
		if got, err := ParseBytes(s); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "GB", "-1", "0", "1e30", "NaN", "5 stones"} {
		if got, err := ParseBytes(s); err == nil {
			t.Errorf("ParseBytes(%q) = %d", s, got)
		}
	}
}
