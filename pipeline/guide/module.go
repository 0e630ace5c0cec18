package guide

import (
	"context"
	_ "embed"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/tetratelabs/wazero"
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

// machine is the module, compiled for this processor.
type machine struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// newMachine compiles the module, or takes it from a folder where it was kept.
func newMachine(ctx context.Context, cache string) (*machine, error) {
	code, err := unpack()
	if err != nil {
		return nil, fmt.Errorf("the guides' module: %w", err)
	}
	c := wazero.NewRuntimeConfig().WithMemoryLimitPages(most).WithCloseOnContextDone(true)
	if cache != "" {
		if kept, err := wazero.NewCompilationCacheWithDir(cache); err == nil { // without it, it is compiled again
			c = c.WithCompilationCache(kept)
		}
	}
	m := &machine{runtime: wazero.NewRuntimeWithConfig(ctx, c)}
	now := func() float64 { return 0 } // times are of no use to the module
	if _, err = m.runtime.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(now).Export("now").Instantiate(ctx); err == nil {
		m.module, err = m.runtime.CompileModule(ctx, code)
	}
	if err != nil {
		m.close()
		return nil, fmt.Errorf("the guides' module: %w", err)
	}
	return m, nil
}

func (m *machine) close() { m.runtime.Close(context.Background()) }
