package pages

import "fmt"

// What a file may take. These are all the limits there are on memory and on work
// that a few bytes could ask for.
const (
	MaxFooter     = 256 << 20 // bytes
	MaxColumns    = 100_000   // leaf columns of a file
	MaxChunks     = 10 << 20  // column chunks of a file
	MaxNesting    = 64        // depth of a schema, and of a Thrift value
	MaxHeader     = 16 << 20  // bytes of a page header: it may have statistics
	MaxPage       = 512 << 20 // bytes of a page, decompressed; fastparquet writes up to 500 MiB
	MaxPageValues = 128 << 20 // of a page
	maxPrefixed   = 128 << 20 // bytes of a window's values that share prefixes: few bytes make many
	MaxOpenPages  = 1 << 30   // bytes of all pages open at once
)

// Budget is the memory that open pages may take together.
type Budget struct {
	Limit int64 // 0: MaxOpenPages
	used  int64
}

// take asks for n bytes more; n may be negative.
func (b *Budget) take(n int64) error {
	limit := b.Limit
	if limit == 0 {
		limit = MaxOpenPages
	}
	if n > 0 && b.used+n > limit {
		return fmt.Errorf("%w: pages of %d MiB open at once; at most %d MiB are read", ErrUnsupported, (b.used+n)>>20,
			limit>>20)
	}
	b.used += n
	return nil
}
