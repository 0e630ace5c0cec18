package glm5

import "glmbatch/kernels"

// Need is the memory of a rank beside weights, as Load allocates it, in bytes.
type Need struct {
	Whole int64 // steps work in it: the same on every rank
	Own   int64 // steps work in it: the rank's own
	// A token in the caches of all layers, on each rank that has it: on one only where ranks
	// have sequences of their own.
	Latent, Index int64
}

// Token is what a token takes in the caches.
func (n *Need) Token() int64 { return n.Latent + n.Index }

// Need returns what a model of this config loaded with o would take; o.Shards is the
// number of ranks.
func (c *Config) Need(o Options) (n Need, err error) {
	o.Shards = max(1, o.Shards)
	o = o.withDefaults(c)
	count := func(bytes int64, s kernels.Sharing) (kernels.Buffer, error) {
		if s == kernels.Sharded {
			n.Own += bytes
		} else {
			n.Whole += bytes
		}
		return kernels.Buffer{Index: 1, Len: bytes}, nil
	}
	if _, err = newArena(c, o, count); err != nil {
		return n, err
	}
	o.Pages = 1
	k, err := newCache(c, o, func(bytes int64, _ kernels.Sharing) (kernels.Buffer, error) {
		return kernels.Buffer{Index: 1, Len: bytes}, nil
	})
	if err != nil {
		return n, err
	}
	for i := range k.latent {
		n.Latent += k.latent[i].Len / int64(o.pages()) / kernels.PageTokens
		n.Index += k.index[i].Len / int64(o.pages()) / kernels.PageTokens
	}
	return n, nil
}
