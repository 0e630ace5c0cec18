package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gocloud.dev/blob"
)

// What an upload holds in memory: parts of a multipart upload at a time.
const (
	partBytes  = 8 << 20
	partsAhead = 2
)

// Upload writes a file to a URL, and makes sure that all of it arrived.
func Upload(ctx context.Context, path, to string) error {
	p, err := find(ctx, to)
	if err != nil {
		return err
	}
	return again(ctx, "writing "+to, func(ctx context.Context) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		ctx, moved, stop := watch(ctx, stallOfParts)
		defer stop()
		body := io.LimitReader(f, info.Size())
		err = p.bucket.Upload(ctx, p.key, moving{body, moved}, &blob.WriterOptions{
			BufferSize: partBytes, MaxConcurrency: partsAhead, ContentType: "application/octet-stream",
			DisableContentTypeDetection: true})
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = fmt.Errorf("%w: %w", cause, err)
			}
			return err
		}
		a, err := p.bucket.Attributes(ctx, p.key)
		if err == nil && a.Size != info.Size() {
			err = fmt.Errorf("%d bytes arrived of %d", a.Size, info.Size())
		}
		return err
	})
}

// moving tells of each read.
type moving struct {
	io.Reader
	moved func()
}

func (m moving) Read(p []byte) (int, error) {
	m.moved()
	return m.Reader.Read(p)
}

// Download writes an object to a file, aside at first. What came before a connection
// ended is kept, and the rest asked for.
func Download(ctx context.Context, raw, path string) (err error) {
	o, err := Open(ctx, raw)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	f, err := os.Create(temp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(temp)
		}
	}()
	buf := make([]byte, 4<<20)
	for at := int64(0); at < o.Size; {
		part := buf[:min(int64(len(buf)), o.Size-at)]
		if err = again(ctx, "reading "+raw, func(ctx context.Context) error {
			return o.fetch(ctx, part,
				at)
		}); err != nil {
			return err
		}
		if _, err = f.Write(part); err != nil {
			return err
		}
		at += int64(len(part))
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
