package glm5

import (
	"fmt"

	"glmbatch/kernels"
)

// cache holds the pages of every layer: whole on every rank, or each rank's own. Page p of
// a sequence is the same page in all layers.
type cache struct {
	format kernels.Format
	latent []kernels.Buffer // a layer each
	index  []kernels.Buffer // a layer each; none where the layer has no indexer
}

// latentBytes and indexBytes are what one token takes in one layer.
func (c *Config) latentBytes(f kernels.Format) int64 {
	return int64(kernels.LatentEntry(f, c.KVLoRA, c.QKRope))
}

func (c *Config) indexBytes(f kernels.Format) int64 {
	return int64(kernels.IndexEntry(f, c.IndexHeadDim))
}

func newCache(c *Config, o Options, alloc allocator) (*cache, error) {
	slots, share := int64(o.pages())*kernels.PageTokens, o.ofRows()
	k := &cache{format: o.KVCache}
	for i := range o.layers(c) {
		latent, err := alloc(slots*c.latentBytes(o.KVCache), share)
		var index kernels.Buffer
		if err == nil && c.IndexerFull(i) {
			index, err = alloc(slots*c.indexBytes(o.KVCache), share)
		}
		if err != nil {
			return nil, fmt.Errorf("cache of %d pages in %s, layer %d: %w", o.Pages, o.KVCache, i, err)
		}
		k.latent = append(k.latent, latent)
		k.index = append(k.index, index)
	}
	return k, nil
}

// FillCache writes entries, whole pages of them in the cache's format, over and
// over into the pages of every layer: contexts that nobody computed, for
// measurements.
func (m *Model) FillCache(latent, index []byte) error {
	for i := range m.cache.latent {
		for _, f := range []struct {
			to   kernels.Buffer
			from []byte
		}{{m.cache.latent[i], latent}, {m.cache.index[i], index}} {
			for at := int64(0); at < f.to.Len && len(f.from) > 0; at += int64(len(f.from)) {
				n := min(int64(len(f.from)), f.to.Len-at)
				if err := m.g.Upload(f.to.Slice(at, n), f.from[:n]); err != nil {
					return fmt.Errorf("filling the cache of layer %d: %w", i, err)
				}
			}
		}
	}
	return nil
}

// layers is the number of layers that are loaded.
func (o Options) layers(c *Config) int {
	if o.MTP {
		return c.AllLayers()
	}
	return c.Layers
}
