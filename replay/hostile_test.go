package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"glmbatch/datasets"
	"glmbatch/replay"
)

// mutations change the rows of a sound capture; the seals are made anew, so that
// only the contents can be refused.
var mutations = map[string]func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture{
	"a row is lost": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		at := r.IntN(len(rows))
		return slices.Delete(rows, at, at+1)
	},
	"a row is there twice": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		at := r.IntN(len(rows))
		return slices.Insert(rows, at, rows[at])
	},
	"rows are swapped": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		i, j := r.IntN(len(rows)), r.IntN(len(rows))
		rows[i], rows[j] = rows[j], rows[i]
		return rows
	},
	"data are cut": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		x := withData(r, rows)
		x.Data = x.Data[:r.IntN(len(x.Data))]
		return rows
	},
	"data grow": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		x := withData(r, rows)
		x.Data = append(bytes.Clone(x.Data), make([]byte, 1+r.IntN(300))...)
		return rows
	},
	"data are noise": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		x := withData(r, rows)
		x.Data = bytes.Clone(x.Data)
		for i := range x.Data {
			x.Data[i] = byte(r.Uint32())
		}
		return rows
	},
	"a byte of the header": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		rows[0].Data = bytes.Clone(rows[0].Data)
		rows[0].Data[r.IntN(len(rows[0].Data))] = byte(r.Uint32())
		return rows
	},
	"a digit of the header": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		rows[0].Data = bytes.Clone(rows[0].Data)
		for range 50 {
			if at := r.IntN(len(rows[0].Data)); rows[0].Data[at] >= '0' && rows[0].Data[at] <= '9' {
				rows[0].Data = slices.Insert(rows[0].Data, at, []byte("99999")...)
				break
			}
		}
		return rows
	},
	"numbers": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		x := &rows[r.IntN(len(rows))]
		v := []int64{-1, 1, 1 << 31, -1 << 31, 1<<63 - 1, 1 << 20}[r.IntN(6)]
		switch r.IntN(9) {
		case 0:
			x.Call = int32(v)
		case 1:
			x.Layer = int32(v)
		case 2:
			x.Rank = int32(v)
		case 3:
			x.Index = v
		case 4:
			x.M = int32(v)
		case 5:
			x.Bytes = v
		case 6:
			x.Slots = v
		case 7:
			x.StartNS = v
		case 8:
			if len(x.Args) > 0 {
				x.Args = slices.Clone(x.Args)
				x.Args[r.IntN(len(x.Args))] = v
			}
		}
		return rows
	},
	"inputs": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		for range 20 {
			x := &rows[r.IntN(len(rows))]
			if x.Part != datasets.CaptureInput || len(x.Data) < 4 {
				continue
			}
			x.Data = bytes.Clone(x.Data)
			copy(x.Data[4*r.IntN(len(x.Data)/4):], [][]byte{{255, 255, 255, 255}, {255, 255, 255, 127},
				{0, 0, 1, 0}}[r.IntN(3)])
		}
		return rows
	},
	"names": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		rows[r.IntN(len(rows))].Name = "kv_cast_fp8"
		return rows
	},
	"parts": func(r *rand.Rand, rows []datasets.Capture) []datasets.Capture {
		rows[r.IntN(len(rows))].Part = "pages"
		return rows
	},
}

func withData(r *rand.Rand, rows []datasets.Capture) *datasets.Capture {
	for {
		if x := &rows[r.IntN(len(rows))]; len(x.Data) > 0 {
			return x
		}
	}
}

// Captures that are not what they should be end in an error or run: they never
// panic, and reading one takes no more memory than a few times its size.
func TestHostileCaptures(t *testing.T) {
	l := newLoader(t)
	file := captured(t, l, 1, small, "decode:first=1", replay.CaptureOptions{Detail: replay.DetailData})[0]
	dir := t.TempDir()
	refused, ran, each := 0, 0, damages
	for name, mutate := range mutations {
		for n := range each {
			rows, err := datasets.ReadCapture(file)
			if err != nil {
				t.Fatal(err)
			}
			rows = mutate(rand.New(rand.NewPCG(uint64(n), 5)), rows)
			path := filepath.Join(dir, "x.arrow")
			if err := datasets.WriteCapture(path, rows); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			x, err := replay.Load(path)
			runtime.ReadMemStats(&after)
			if got := int64(after.TotalAlloc - before.TotalAlloc); got > 16*info.Size()+16<<20 {
				t.Errorf("%s, %d: reading %d bytes took %d", name, n, info.Size(), got)
			}
			what := fmt.Sprintf("%s, %d", name, n)
			if err != nil {
				if !errors.Is(err, datasets.ErrFile) {
					t.Errorf("%s: %v is not marked", what, err)
				}
				refused++
				continue
			}
			o := quick(l)
			o.Verify = replay.VerifyCalls
			_, err = replay.Run(x, l.load, o)
			if err != nil {
				refused++
				continue
			}
			ran++
		}
	}
	if refused < 6*each || ran == 0 {
		t.Errorf("%d captures were refused, %d ran", refused, ran)
	}
	t.Logf("%d refused, %d ran", refused, ran)
}

func FuzzLoad(f *testing.F) {
	l := newLoader(f)
	file := captured(f, l, 1, small, "decode:first=1", replay.CaptureOptions{})[0]
	rows, err := datasets.ReadCapture(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rows[0].Data, "", "x", []byte{1, 2, 3, 4}, int64(0), int32(0))
	f.Add(rows[0].Data, string(datasets.CaptureInput), "tokens", []byte{1, 2, 3, 4}, int64(3), int32(1))
	f.Add(rows[0].Data, string(datasets.CaptureOutput), "y", bytes.Repeat([]byte{9}, 32), int64(3), int32(1))
	f.Add(rows[0].Data, string(datasets.CaptureSpan), "y", []byte{}, int64(-3), int32(1<<30))
	f.Add(rows[0].Data, string(datasets.CapturePage), "latent_cache", []byte{1}, int64(1<<40), int32(-1))
	f.Fuzz(func(t *testing.T, header []byte, part, name string, data []byte, index int64, call int32) {
		rows := []datasets.Capture{{Part: datasets.CaptureHeader, Data: header},
			{Part: datasets.CaptureCall, Name: name, Args: make([]int64, len(data)%9), Scalars: make([]float32, 4)},
			{Part: datasets.CapturePart(part), Name: name, Index: index, Call: call, Rank: call, Layer: call,
				Hash: data, Data: data, Dims: datasets.Dims{M: call}}}
		path := filepath.Join(t.TempDir(), "x.arrow")
		if err := datasets.WriteCapture(path, rows); err != nil {
			t.Fatal(err)
		}
		x, err := replay.Load(path)
		if err != nil && !errors.Is(err, datasets.ErrFile) {
			t.Errorf("%v is not marked", err)
		}
		if err == nil && (len(x.Calls) == 0 || len(x.Outputs) == 0) {
			t.Error("an empty capture was taken")
		}
	})
}
