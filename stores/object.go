package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"gocloud.dev/blob"
)

// What an object keeps of itself: the blocks that were used last.
const (
	blockBytes = 1 << 20
	mostBlocks = 96
)

// Object is an object that is read by ranges, as an io.ReaderAt. The columns of a
// table lie side by side and are read in turns, so blocks are kept.
type Object struct {
	Size    int64
	ModTime int64 // ns since 1970

	place
	url    string
	mu     sync.Mutex
	blocks map[int64]*block // by their number
	used   int64            // counts uses
}

type block struct {
	data []byte
	used int64
}

// Open looks at an object; nothing of it is read yet.
func Open(ctx context.Context, raw string) (*Object, error) {
	p, err := find(ctx, raw)
	if err != nil {
		return nil, err
	}
	o := &Object{place: p, url: raw, blocks: map[int64]*block{}}
	err = again(ctx, "opening "+raw, func(ctx context.Context) error {
		a, err := p.bucket.Attributes(ctx, p.key)
		if err == nil {
			o.Size, o.ModTime = a.Size, a.ModTime.UnixNano()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}

// ReadAt reads from the object, or from what is kept of it.
func (o *Object) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("a read before the object's start")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for n < len(p) {
		at := off + int64(n)
		if at >= o.Size {
			return n, io.EOF
		}
		b, err := o.block(at / blockBytes)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], b[at%blockBytes:])
	}
	return n, nil
}

// block returns a block of the object.
func (o *Object) block(i int64) ([]byte, error) {
	o.used++
	if b := o.blocks[i]; b != nil {
		b.used = o.used
		return b.data, nil
	}
	var data []byte
	if len(o.blocks) >= mostBlocks {
		oldest := int64(-1)
		for k, b := range o.blocks {
			if oldest < 0 || b.used < o.blocks[oldest].used {
				oldest = k
			}
		}
		data = o.blocks[oldest].data[:0]
		delete(o.blocks, oldest)
	}
	from := i * blockBytes
	want := int(min(blockBytes, o.Size-from))
	if cap(data) < want {
		data = make([]byte, want)
	}
	data = data[:want]
	err := again(context.Background(), "reading "+o.url, func(ctx context.Context) error {
		return o.fetch(ctx, data,
			from)
	})
	if err != nil {
		return nil, err
	}
	o.blocks[i] = &block{data, o.used}
	return data, nil
}

// fetch fills p with what the object has at from.
func (o *Object) fetch(ctx context.Context, p []byte, from int64) error {
	ctx, moved, stop := watch(ctx, stall)
	defer stop()
	r, err := o.bucket.NewRangeReader(ctx, o.key, from, int64(len(p)), &blob.ReaderOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	if r.Size() != o.Size || r.ModTime().UnixNano() != o.ModTime {
		return errChanged
	}
	for n := 0; n < len(p); {
		k, err := r.Read(p[n:])
		n += k
		moved()
		if n == len(p) {
			break
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("after %d bytes of %d: %w", n, len(p), err)
		}
	}
	return nil
}

// Close forgets what is kept of the object.
func (o *Object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.blocks)
	return nil
}
