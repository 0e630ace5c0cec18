package pages

import "testing"

func FuzzPageHeader(f *testing.F) {
	f.Add([]byte{0x15, 0x00, 0x15, 0x20, 0x15, 0x20, 0x2c, 0x15, 0x08, 0x00, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := parseHeader(data); err == nil && h.size > len(data) {
			t.Errorf("a header of %d bytes in %d", h.size, len(data))
		}
	})
}
