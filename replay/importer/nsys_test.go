package importer

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
)

// nsysTables is a small report: two processes on a GPU each, steps by NVTX, a
// graph with three nodes, a launch outside of the window.
type nsysTables struct {
	strings []nsysString
	kernels []nsysKernel
	memcpy  []nsysCopy
	memset  []nsysCopy
	graphs  []nsysGraph
	calls   []nsysCall
	ranges  []nsysRange
	meta    []nsysMeta
	clock   []nsysClock
	notes   []nsysDiagnostic
}

func sampleNsys() nsysTables {
	n := nsysTables{
		strings: []nsysString{{1, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"}, {2, "nvjet_tst_64x8"},
			{3, "cudaLaunchKernel_v7000"}, {4, "cudaGraphLaunch_v10000"}, {5, "decode_step.11"}, {6, "device_kernel"}},
		clock: []nsysClock{{1_700_000_000_000_000_000, 5_000_000}},
		meta:  []nsysMeta{{"EXPORT_PARAM_TIME_NORMALIZE", "false"}},
		notes: []nsysDiagnostic{{1, "all fine"}, {3, "Some events were dropped"}},
	}
	for p := range int64(2) {
		global := int64(0x1000000000000) | (100+p)<<24
		at := int64(10_000_000)
		n.calls = append(n.calls, nsysCall{at, at + 1000, global | 7, 1, 3},
			nsysCall{at + 50_000, at + 53_000, global | 7, 2, 4})
		n.kernels = append(n.kernels, nsysKernel{Start: at + 5000, End: at + 9000, Device: p, Stream: 7, Correlation: 1,
			GlobalPID: global, Demangled: 2, Short: 6, GridX: 4, GridY: 1, GridZ: 1, BlockX: 128, BlockY: 1, BlockZ: 1})
		for k := range int64(3) {
			n.kernels = append(n.kernels, nsysKernel{Start: at + 60_000 + 10_000*k, End: at + 65_000 + 10_000*k,
				Device: p, Stream: 7, Correlation: 2, GlobalPID: global, Demangled: 1, Short: 6, GraphNode: 100 + k})
		}
		n.kernels = append(n.kernels, nsysKernel{Start: at - 9000, End: at - 5000, Device: p, Stream: 7,
			Correlation: 99, GlobalPID: global, Demangled: 2, Short: 6})
		n.memcpy = append(n.memcpy, nsysCopy{Start: at + 20_000, End: at + 21_000, Device: p, Stream: 13,
			Correlation: 98, GlobalPID: global, Bytes: 4096, CopyKind: 8})
		n.memset = append(n.memset, nsysCopy{Start: at + 22_000, End: at + 23_000, Device: p, Stream: 13,
			Correlation: 97, GlobalPID: global, Bytes: 64})
		n.ranges = append(n.ranges, nsysRange{at - 1000, at + 30_000, 59, "decode_step.10", 0, global | 7},
			nsysRange{at + 40_000, at + 70_000, 59, "", 5, global | 7},
			nsysRange{at, at + 10, 59, "aten::view, op_id = 7", 0, global | 7})
	}
	return n
}

// each calls f with every table that has rows: its name and a slice of structs.
func (n nsysTables) each(f func(table string, rows reflect.Value)) {
	for _, t := range []struct {
		name string
		rows any
	}{{"StringIds", n.strings}, {tableKernel, n.kernels}, {tableMemcpy, n.memcpy}, {tableMemset, n.memset},
		{tableGraph, n.graphs}, {tableRuntime, n.calls},
		{"NVTX_EVENTS", n.ranges}, {"META_DATA_EXPORT", n.meta}, {"TARGET_INFO_SESSION_START_TIME",
			n.clock}, {"DIAGNOSTIC_EVENT", n.notes}} {
		if v := reflect.ValueOf(t.rows); v.Len() > 0 {
			f(t.name, v)
		}
	}
}

// sqlite writes the tables as nsys export --type sqlite does, with a column
// between that no one asked for.
func (n nsysTables) sqlite(t testing.TB, extra ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report?#%41.sqlite")
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("?", "%3f", "#", "%23", "%", "%25").Replace(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(query string, args ...any) {
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(query, err)
		}
	}
	n.each(func(table string, rows reflect.Value) {
		typ := rows.Type().Elem()
		var columns, marks []string
		for i := range typ.NumField() {
			kind := "INTEGER"
			if typ.Field(i).Type.Kind() == reflect.String {
				kind = "TEXT"
			}
			columns, marks = append(columns, `"`+typ.Field(i).Tag.Get("parquet")+`" `+kind), append(marks, "?")
		}
		run(fmt.Sprintf(`CREATE TABLE %s (%s, "futureColumn" REAL)`, table, strings.Join(columns, ", ")))
		for i := range rows.Len() {
			var args []any
			for k := range typ.NumField() {
				args = append(args, rows.Index(i).Field(k).Interface())
				if rows.Index(i).Field(k).IsZero() {
					args[k] = nil // as newer exports write what there is not
				}
			}
			run(fmt.Sprintf("INSERT INTO %s VALUES (%s, 0.5)", table, strings.Join(marks, ", ")), args...)
		}
	})
	for _, e := range extra {
		run(e)
	}
	return path
}

func writeTable[T any](t testing.TB, path string, rows []T) {
	t.Helper()
	if len(rows) == 0 {
		return
	}
	w, err := datasets.Create[T](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// folder writes the tables as parquetdir or arrowdir.
func (n nsysTables) folder(t testing.TB, format string) string {
	dir := filepath.Join(t.TempDir(), "report_"+format)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(table string) string { return filepath.Join(dir, table+"."+format) }
	writeTable(t, file("StringIds"), n.strings)
	writeTable(t, file(tableKernel), n.kernels)
	writeTable(t, file(tableMemcpy), n.memcpy)
	writeTable(t, file(tableMemset), n.memset)
	writeTable(t, file(tableGraph), n.graphs)
	writeTable(t, file(tableRuntime), n.calls)
	writeTable(t, file("NVTX_EVENTS"), n.ranges)
	writeTable(t, file("META_DATA_EXPORT"), n.meta)
	writeTable(t, file("TARGET_INFO_SESSION_START_TIME"), n.clock)
	writeTable(t, file("DIAGNOSTIC_EVENT"), n.notes)
	return dir
}

func importNsys(t testing.TB, paths ...string) (*Summary, []datasets.Span) {
	t.Helper()
	var rows []datasets.Span
	s, err := Nsys(paths, Options{}, func(r []datasets.Span) error {
		rows = append(rows, r...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, rows
}

// TestNsys holds that the three forms of an export give the same rows, and what
// those are.
func TestNsys(t *testing.T) {
	n := sampleNsys()
	s, rows := importNsys(t, n.sqlite(t))
	for _, format := range []string{datasets.Parquet, datasets.Arrow} {
		_, other := importNsys(t, n.folder(t, format))
		if diff := cmp.Diff(rows, other); diff != "" {
			t.Errorf("%s (-sqlite +%s):\n%s", format, format, diff)
		}
	}
	if len(s.Ranks) != 2 || s.Ranks[0].Rank != 0 || s.Ranks[1].Rank != 1 {
		t.Fatalf("ranks %+v, want 0 and 1", s.Ranks)
	}
	for _, r := range s.Ranks {
		if r.Kernels != 5 || r.Memcpy != 1 || r.Memset != 1 || r.Calls != 2 || r.KernelNS != 4000+3*5000+4000 {
			t.Errorf("rank %+v", r)
		}
	}
	// Time 0 is the first kernel's, or window's, whichever is earlier.
	if want := int64(1_700_000_000_000_000_000 + 10_000_000 - 5_000_000 - 9000); s.EpochNS != want {
		t.Errorf("epoch %d, want %d", s.EpochNS, want)
	}
	graph, launches := 0, 0
	for _, r := range rows {
		if r.Rank != 1 {
			continue
		}
		switch {
		case r.Class == "comm.ar":
			graph++
			if r.Step != 11 || r.Graph < 100 || r.Correlation != 2 || r.Lane != "stream 7" {
				t.Errorf("a node of the graph: %+v", r)
			}
		case r.Kernel == "cudaGraphLaunch":
			launches++
			if r.Step != 11 || r.Evidence != "launch" || r.Lane != "host 7" || r.Class != "host" {
				t.Errorf("the launch of the graph: %+v", r)
			}
		case r.Class == "gemm.bf16" && r.Correlation == 1:
			if r.Step != 10 || r.GridX != 4 || r.BlockX != 128 {
				t.Errorf("the first kernel: %+v", r)
			}
		case r.Class == "gemm.bf16":
			if r.Step != -1 || r.Correlation != 99 {
				t.Errorf("the kernel without a launch: %+v", r)
			}
		case r.Class == "memcpy.d2d":
			if r.Bytes != 2*4096 {
				t.Errorf("the copy: %+v", r)
			}
		}
	}
	if graph != 3 || launches != 1 {
		t.Errorf("%d nodes and %d launches of the graph, want 3 and 1", graph, launches)
	}
	for code, severity := range map[string]string{"launch_outside": severityNote, "nsys": severityUnreliable} {
		if f := findingOf(s, code); f == nil || f.Severity != severity {
			t.Errorf("finding %s: %+v, want severity %s", code, f, severity)
		}
	}
}

// TestNsysRefusals holds the reasons for which an export gives no timeline.
func TestNsysRefusals(t *testing.T) {
	graphs := sampleNsys()
	graphs.kernels, graphs.memcpy, graphs.memset = nil, nil, nil
	graphs.graphs = []nsysGraph{{Start: 10_060_000, End: 10_090_000, Stream: 7, Correlation: 2,
		GlobalPID: 0x1000000000000 | 100<<24}}
	launches := sampleNsys()
	launches.kernels, launches.memcpy, launches.memset = nil, nil, nil
	empty := t.TempDir()
	for _, c := range []struct{ name, path, want string }{
		{"graph mode", graphs.sqlite(t), "re-record with --cuda-graph-trace=node"},
		{"no kernels", launches.sqlite(t), "0 GPU events, 4 launches"},
		{"a report", writeFile(t, "report.nsys-rep", []byte("something else entirely")), "nsys export --type sqlite"},
		{"another database", nsysTables{meta: []nsysMeta{{"a", "b"}}}.sqlite(t), "none of the tables"},
		{"a view for a table", nsysTables{strings: sampleNsys().strings}.sqlite(t,
			"CREATE VIEW "+tableKernel+" AS WITH RECURSIVE c(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM c) "+
				"SELECT start FROM c"), "0 GPU events"},
		{"text for a number", sampleNsys().sqlite(t, "UPDATE "+tableKernel+" SET start = 'soon'"), "does not fit"},
		{"an empty folder", empty, "parquetdir"},
		{"nothing", filepath.Join(empty, "none"), "no such file"},
	} {
		_, err := Nsys([]string{c.path}, Options{}, func([]datasets.Span) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.want)
		}
	}
}

// TestNsysGraphMode holds that graphs recorded as blocks beside kernels make the
// timeline unreliable and stay in it.
func TestNsysGraphMode(t *testing.T) {
	n := sampleNsys()
	n.graphs = []nsysGraph{{Start: 10_200_000, End: 10_290_000, Stream: 7, Correlation: 55,
		GlobalPID: 0x1000000000000 | 100<<24}}
	s, rows := importNsys(t, n.sqlite(t))
	if f := findingOf(s, "graph_mode"); f == nil || f.Severity != severityUnreliable || f.Count != 1 {
		t.Errorf("finding %+v, want an unreliable one", f)
	}
	if last := rows[len(rows)-1]; last.Kernel != opaqueGraph || last.Class != unclassified {
		t.Errorf("last row %+v, want the graph", last)
	}
}

// TestNsysWithoutKernels holds that a process with launches and no kernels is
// reported and its calls stay.
func TestNsysWithoutKernels(t *testing.T) {
	n := sampleNsys()
	n.calls = append(n.calls, nsysCall{10_000_000, 10_001_000, 0x1000000000000 | 300<<24 | 5, 1, 3})
	s, rows := importNsys(t, n.sqlite(t))
	if f := findingOf(s, "no_kernels"); f == nil || !strings.Contains(f.Text, "process 300") {
		t.Errorf("finding %+v, want one of process 300", f)
	}
	if rows[len(rows)-1].Rank == -1 || len(s.Ranks) != 2 {
		t.Errorf("%d ranks, want 2", len(s.Ranks))
	}
	found := false
	for _, r := range rows {
		found = found || r.Rank == -1 && r.Kernel == "cudaLaunchKernel"
	}
	if !found {
		t.Error("the call of process 300 has no row")
	}
}

// FuzzNsys feeds damaged SQLite files to the whole import.
func FuzzNsys(f *testing.F) {
	sample, err := os.ReadFile(sampleNsys().sqlite(f))
	if err != nil {
		f.Fatal(err)
	}
	// A change is a place and bytes to put there, so that files stay near the sound one.
	f.Add(uint32(0), []byte(sqliteMagic))
	f.Add(uint32(100), []byte{13, 0, 0, 0, 9})
	f.Add(uint32(4096), []byte{255, 255, 255, 255})
	path := filepath.Join(f.TempDir(), "fuzz.sqlite")
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		data := append([]byte{}, sample...)
		copy(data[int(at)%len(data):], change)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Nsys([]string{path}, Options{MaxRows: 10000}, func([]datasets.Span) error { return nil })
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %q", err)
		}
	})
}

// TestPagesInACircle: a damaged SQLite file whose pages lead back to where they were
// ends in an error, however large the circle is.
func TestPagesInACircle(t *testing.T) {
	n := sampleNsys()
	for i := range int64(60) {
		n.meta = append(n.meta, nsysMeta{fmt.Sprint("key ", i), strings.Repeat("value", 100)})
	}
	path := n.sqlite(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := int(binary.BigEndian.Uint16(data[16:]))
	circles := 0
	for at := 0; at < len(data); at += size {
		page := data[at : at+size]
		if at == 0 || page[0] != 5 { // an inner page of a table
			continue
		}
		cell := int(binary.BigEndian.Uint16(page[12:])) // the first: it begins with the page below
		copy(page[8:12], page[cell:cell+4])             // and the last page below is that one again
		circles++
	}
	if circles == 0 {
		t.Fatal("no table has two levels of pages")
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Nsys([]string{path}, Options{}, func([]datasets.Span) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "lead in a circle") {
		t.Errorf("%v", err)
	}
}
