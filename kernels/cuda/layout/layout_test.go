package layout

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written are sources as the kernels' are.
var written = map[string]string{
	"a.cuh": `
#pragma once
constexpr int kRanks = 8;  // not 9
constexpr int kPage = 64, kBytes = kPage * (2 + 1) << 1;
__host__ __device__ constexpr int padded(int n) { return n * 128 + 64; }
enum Op { kFirst, kSecond,
  kThird };
struct Pair { float a; u64 b; };
`,
	"b.cu": `
#include "a.cuh"
template <int F>
constexpr int kRow = F == 2 ? 128 : 256;
struct CallP {
  const float* x;        // [m, ld]
  float* inbox[kRanks];
  const unsigned *from, *to;
  int m, n;
  uint8_t flag;
  long long all;
  union {
    Pair one;
    int four[7];
  } p[2];
  __device__ int twice() const { return 2 * m; }
};
template <int T, bool kStaged>
struct Room {
  static constexpr int kItem = T * kRow<2>, kAll = kItem + padded(T);
  alignas(16) char q[kStaged ? T * 3 : 4];
  alignas(128) Pair pair[T][2];
  u64 full[2 * kItem / 128 - 1];
  int rest[];
};
__device__ void f() { constexpr int kTwice = 1; }
__device__ void g() { constexpr int kTwice = 2; }
`,
}

func write(t *testing.T) map[string]*Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range written {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Read(dir)
	if err != nil || len(all) != len(written) {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

func TestFields(t *testing.T) {
	b := write(t)["b.cu"]
	for _, c := range []struct {
		name string
		size int64
		want []Field
	}{
		{"Pair", 16, []Field{{"a", 0, 4}, {"b", 8, 8}}},
		{"CallP", 176, []Field{{"x", 0, 8}, {"inbox", 8, 64}, {"from", 72, 8}, {"to", 80, 8}, {"m", 88, 4}, {"n", 92, 4}, {"flag", 96, 1}, {"all", 104, 8}, {"", 112, 64}}},
		{"Room<2, true>", 256, []Field{{"q", 0, 6}, {"pair", 128, 64}, {"full", 192, 24}, {"rest", 216, 0}}},
	} {
		got, size, err := b.Fields(c.name)
		if d := cmp.Diff(c.want, got); err != nil || d != "" || size != c.size {
			t.Errorf("%s has %d bytes, want %d, %v\n%s", c.name, size, c.size, err, d)
		}
	}
}

func TestEval(t *testing.T) {
	b := write(t)["b.cu"]
	for expr, want := range map[string]int64{
		"kRanks": 8, "kFirst": 0, "kThird": 2, "kBytes": 384, "kRow<2> + kRow<1 + 2>": 384, "padded(2)": 320, "Room<3, false>::kAll": 832, "sizeof(Room<1, 0>)": 256,
		"1 + 2 * 3 << 1": 14, "(1 | 6) & 3": 3, "200'000 / 7 % 10": 1, "0x10u - 1": 15, "2 < 3 && 3 <= 2 ? 5 : -6": -6, "sizeof(float4)": 16,
	} {
		if got, err := b.Eval(expr); got != want || err != nil {
			t.Errorf("%s is %d, want %d, %v", expr, got, want, err)
		}
	}
	for _, expr := range []string{"", "~1", "kNone", "kTwice", "1 +", "1 2", "kRow", "padded(1", "Room<1>::kAll", "sizeof(None)", "1 / 0", "99999999999999999999", "Room<1, 1>::none"} {
		if v, err := b.Eval(expr); err == nil {
			t.Errorf("%q is %d", expr, v)
		}
	}
}
