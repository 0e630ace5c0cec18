package guide

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// packed is the module of the folder wasm: `make guide` builds it.
//
//go:embed module.wasm.zst
var packed []byte

// unpack returns the module as it was built.
var unpack = sync.OnceValues(func() ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(packed, nil)
})

// most is the memory that a box may have, in WebAssembly's pages of 64 KiB.
const most = 1 << 30 >> 16

// machine is the module, compiled for this processor: in two ways, as a call can be broken
// off only where the code looks for that all the time, which makes it three times as slow.
type machine struct {
	fast, strict compiled
}

type compiled struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// newMachine compiles the module, or takes it from a folder where it was kept.
func newMachine(ctx context.Context, cache string) (*machine, error) {
	code, err := unpack()
	if err != nil {
		return nil, fmt.Errorf("the guides' module: %w", err)
	}
	c := wazero.NewRuntimeConfig().WithMemoryLimitPages(most)
	if cache != "" {
		if kept, err := wazero.NewCompilationCacheWithDir(cache); err == nil { // without it, it is compiled again
			c = c.WithCompilationCache(kept)
		}
	}
	m := &machine{}
	ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	if m.fast, err = compile(ctx, c, code); err == nil {
		m.strict, err = compile(ctx, c.WithCloseOnContextDone(true), code)
	}
	if err != nil {
		m.close()
		return nil, fmt.Errorf("the guides' module: %w", err)
	}
	return m, nil
}

func compile(ctx context.Context, o wazero.RuntimeConfig, code []byte) (c compiled, err error) {
	c.runtime = wazero.NewRuntimeWithConfig(ctx, o)
	now := func() float64 { return 0 } // times are of no use to the module
	if _, err = c.runtime.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(now).Export("now").Instantiate(
		ctx); err == nil {
		c.module, err = c.runtime.CompileModule(ctx, code)
	}
	return c, err
}

func (m *machine) close() {
	for _, c := range []compiled{m.fast, m.strict} {
		if c.runtime != nil {
			c.runtime.Close(context.Background())
		}
	}
}
