package pages

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// codecs fill dst, whose length is what the page's header says, from src. None
// may write more, whatever src claims.
var codecs = map[int32]func(dst, src []byte) error{
	1: unsnappy,
	2: func(dst, src []byte) error {
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return err
		}
		return fill(dst, r)
	},
	4: func(dst, src []byte) error { return fill(dst, brotli.NewReader(bytes.NewReader(src))) },
	5: unlz4Hadoop,
	6: unzstd,
	7: unlz4,
}

var codecNames = [...]string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}

func decompress(codec int32, dst, src []byte) error {
	if codec == 0 {
		if len(src) != len(dst) {
			return damaged("a page of %d bytes, %d uncompressed, without compression", len(src), len(dst))
		}
		copy(dst, src)
		return nil
	}
	f := codecs[codec]
	name := fmt.Sprint(codec)
	if codec > 0 && int(codec) < len(codecNames) {
		name = codecNames[codec]
	}
	if f == nil {
		return unsupported("compression %s", name)
	}
	if err := f(dst, src); err != nil {
		return damaged("%s: %v", name, err)
	}
	return nil
}

// fill reads exactly len(dst) bytes.
func fill(dst []byte, r io.Reader) error {
	n, err := io.ReadFull(r, dst)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	if n < len(dst) {
		return errSize(n, len(dst))
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n > 0 {
		return fmt.Errorf("more than %d bytes", len(dst))
	} else if err != nil && err != io.EOF {
		return err
	}
	return nil
}

func errSize(n, want int) error { return fmt.Errorf("%d bytes decompressed, want %d", n, want) }

func unsnappy(dst, src []byte) error {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return err
	}
	if n != len(dst) {
		return errSize(n, len(dst))
	}
	_, err = snappy.Decode(dst, src)
	return err
}

var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxPage))
})

func unzstd(dst, src []byte) error {
	d, err := zstdDecoder()
	if err != nil {
		return err
	}
	out, err := d.DecodeAll(src, dst[:0:len(dst)])
	if err == nil && len(out) != len(dst) {
		err = errSize(len(out), len(dst))
	}
	return err
}

func unlz4(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	if err == nil && n != len(dst) {
		err = errSize(n, len(dst))
	}
	return err
}

// unlz4Hadoop reads what the format's codec LZ4 came to mean: Hadoop's frames of
// two big-endian sizes and a block, or a bare block as old Arrow wrote it, or
// LZ4's own frames.
func unlz4Hadoop(dst, src []byte) error {
	if hadoopBlocks(dst, src) {
		return nil
	}
	err := unlz4(dst, src)
	if err != nil && len(src) > 4 && binary.LittleEndian.Uint32(src) == 0x184D2204 {
		return fill(dst, lz4.NewReader(bytes.NewReader(src)))
	}
	return err
}

func hadoopBlocks(dst, src []byte) bool {
	for len(src) >= 8 {
		n, m := binary.BigEndian.Uint32(src), binary.BigEndian.Uint32(src[4:])
		src = src[8:]
		if uint64(n) > uint64(len(dst)) || uint64(m) > uint64(len(src)) || unlz4(dst[:n], src[:m]) != nil {
			return false
		}
		dst, src = dst[n:], src[m:]
	}
	return len(dst) == 0 && len(src) == 0
}
