package guide

import (
	"io"
	"os"

	"github.com/tetratelabs/wazero/api"
)

// image is the memory of a box that knows the tokens, with which others begin. A hundred
// megabytes are copied only where a box cannot have the pages of a file in memory, which
// those that it writes to are copied of.
type image struct {
	size int64    // bytes
	file *os.File // nil: data has it
	data []byte
}

// close gives the file up; boxes keep what they have of it.
func (i *image) close() {
	if i.file != nil {
		i.file.Close()
	}
}

// copy gives it to a box that has no pages of it.
func (i *image) copy(to api.Memory) error {
	all, ok := to.Read(0, uint32(i.size))
	if !ok {
		return io.ErrShortBuffer
	}
	if i.file == nil {
		copy(all, i.data)
		return nil
	}
	_, err := i.file.ReadAt(all, 0)
	return err
}

// Reallocate is what WebAssembly asks of its memory: it never moves.
func (s *space) Reallocate(size uint64) []byte {
	if size > uint64(len(s.all)) {
		return nil
	}
	return s.all[:size:size]
}

// Free does nothing: a call that is broken off may still be at work. A box's close releases it.
func (s *space) Free() {}
