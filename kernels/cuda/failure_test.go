//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"
	"glmbatch/kernels/ranks"
)

// A GPU that the program has no kernels for is refused, with what it needs.
func TestNoImage(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	other, err := os.ReadFile("testdata/other.fatbin")
	if err != nil {
		t.Skip(err) // the binary runs without its sources
	}
	files := fstest.MapFS{}
	for _, image := range plan.Images {
		files["images/"+image.Name+".fatbin"] = &fstest.MapFile{Data: other}
	}
	ds, err := Open(1, Options{images: files})
	if err == nil {
		name := ds[0].Info().Name
		ds[0].Close()
		t.Fatalf("%s opened with kernels of sm_120a alone", name)
	}
	t.Log(err)
	for _, want := range []string{"rank 0 on GPU 0", "NO_BINARY_FOR_GPU", "compute capability 9.0 or newer"} {
		if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// An allocation that does not fit names its size, the GPU and what is free, and
// the device goes on.
func TestMemoryError(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	ds, err := Open(1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ds[0].Close()
	_, err = ds[0].Alloc(1<<45, kernels.Sharded)
	t.Log(err)
	for _, want := range []string{"32768.000 GiB", "GPU 0", ds[0].Info().Name, "free"} {
		if !errors.Is(err, kernels.ErrMemory) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if _, err := ds[0].Alloc(1<<20, kernels.Sharded); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// alone runs the test that calls it in a process of its own, for what spoils the
// GPU for the process it is done in. It is true there.
func alone(t *testing.T) bool {
	t.Helper()
	const env = "GLMBATCH_TEST_ALONE"
	if os.Getenv(env) == t.Name() {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), env+"="+t.Name())
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// A kernel that hangs or writes where no memory is ends its list on all ranks in
// time, with an error that names rank and GPU; closing does not wait for it.
func TestFaults(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		kind  FaultKind
		ranks int
		want  []string
	}{
		{Hang, 1, []string{"rank 0 on GPU 0 did not end its step within 500ms"}},
		{Address, 1, []string{"rank 0 on GPU 0", "ILLEGAL_ADDRESS", "compute-sanitizer"}},
		{Address, 4, []string{"on GPU 0", "ILLEGAL_ADDRESS", "compute-sanitizer"}},
	} {
		t.Run(fmt.Sprintf("%s_of_%d", c.kind, c.ranks), func(t *testing.T) {
			if alone(t) {
				testFault(t, c.kind, c.ranks, c.want)
			}
		})
	}
}

func testFault(t *testing.T, kind FaultKind, n int, want []string) {
	const limit = 500 * time.Millisecond
	ds, err := Open(n, Options{StepTimeout: limit, Fault: Fault{Kind: kind, Rank: n - 1, List: 2}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := ranks.New(ds, ranks.Options{Lock: true})
	if err != nil {
		t.Fatal(err)
	}
	call := kernels.Call{Kernel: "all_reduce_norm", Dims: kernels.Dims{M: 1, N: 256, Ranks: int32(n)},
		Scalars: [4]float32{1e-6}}
	for range 4 {
		b, err := g.Alloc(4*256, kernels.Sharded)
		if err != nil {
			t.Fatal(err)
		}
		call.Args = append(call.Args, b)
	}
	calls := []kernels.Call{call}
	for i := range 2 {
		if err := g.Run(calls, nil); err != nil {
			t.Fatalf("list %d: %v", i, err)
		}
	}
	start := time.Now()
	err = g.Run(calls, nil)
	if took := time.Since(start); took > 3*limit {
		t.Errorf("it took %v, with a step timeout of %v", took, limit)
	}
	for _, w := range want {
		if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), w) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not say %q in one line", err, w)
		}
	}
	if g.Run(calls, nil) == nil {
		t.Error("a list after the fault succeeds")
	}
	start = time.Now()
	if err := g.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(start); took > limit/2 {
		t.Errorf("closing took %v", took)
	}
}
