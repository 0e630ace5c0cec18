package datasets

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestArrowRoundTrip: every value of every fixture comes back from an Arrow stream.
func TestArrowRoundTrip(t *testing.T) {
	for _, name := range fixtures {
		in := openFixture(t, name)
		var stream bytes.Buffer
		if err := in.WriteArrow(&stream); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		back, err := OpenStream(&stream, "standard input")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(rowsOf(t, in), rowsOf(t, back)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(in.ColumnNames(), back.ColumnNames()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		back.Close()
	}
}

// TestHostileArrowStream: a damaged stream is an error, and takes no memory that it
// does not have.
func TestHostileArrowStream(t *testing.T) {
	in := openFixture(t, fixtures[0])
	var stream bytes.Buffer
	if err := in.WriteArrow(&stream); err != nil {
		t.Fatal(err)
	}
	whole := stream.Bytes()
	for i := range 150 {
		damaged := slices.Clone(whole)
		at := 19 * i % len(damaged)
		if i%4 == 0 {
			damaged = damaged[:at]
		} else {
			damaged[at] ^= byte(1 << (i % 8))
			damaged[(at+4)%len(damaged)] = 0x7f
		}
		if back, err := OpenStream(bytes.NewReader(damaged), "x"); err == nil {
			back.Close()
		} else if !strings.HasPrefix(err.Error(), "x: ") {
			t.Errorf("%d: %v", i, err)
		}
	}
}
