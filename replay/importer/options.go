package importer

import (
	"errors"
	"fmt"
)

// Options steers an import. The zero value is usable.
type Options struct {
	// Rank of the first file; further files count on. -1 or less is not
	// allowed; use [Options.SetRank] to say that it was given.
	Rank    int32
	SetRank bool // Rank wins over what the files say

	// KVSlots is the number of slots of the KV pool, or 0: inferred. A cast of
	// KVSlots*KVWidth values becomes class kv.cast.
	KVSlots int64
	KVWidth int64 // values of a slot in one layer; 0: 576 (512 latent + 64 rotary)

	Rules []Rule // the user's own ([ReadRules]), tried before [Rules]

	AllowUnaligned bool  // keep ranks whose collectives do not pair, marked unreliable
	MaxResidualNS  int64 // largest residual of the rank alignment; 0: 100 us
	MaxRows        int   // GPU activities and API calls kept in memory; 0: 100 million
}

// Validate reports everything that is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	for _, v := range []struct {
		name  string
		value int64
	}{
		{"rank", int64(o.Rank)}, {"KV slots", o.KVSlots}, {"KV width", o.KVWidth},
		{"largest residual", o.MaxResidualNS}, {"most rows", int64(o.MaxRows)},
	} {
		if v.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, must not be negative", v.name, v.value))
		}
	}
	for _, r := range o.Rules {
		if err := r.validate(); err != nil {
			errs = append(errs, fmt.Errorf("rule %q: %w", r.Pattern, err))
		}
	}
	if o.KVSlots > 1<<40 || o.KVWidth > 1<<20 {
		errs = append(errs, fmt.Errorf("a KV pool of %d slots x %d values is larger than any machine", o.KVSlots,
			o.KVWidth))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.KVWidth == 0 {
		o.KVWidth = latentWidth
	}
	if o.MaxResidualNS == 0 {
		o.MaxResidualNS = 100_000
	}
	if o.MaxRows == 0 {
		o.MaxRows = 100_000_000
	}
	return o
}

// latentWidth is the width of a slot of GLM-5's latent cache: 512 latent and 64
// rotary values.
const latentWidth = 576
