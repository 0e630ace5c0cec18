package kernels

// Table has every kernel, in the order of reports.
var Table = join(
	one(Kernel{Name: "feed", Class: Sample, Pipe: OnVector,
		// M rows of logits. Row m with from[m] >= 0 goes on from row from[m] of the list before, whose last holds the
		// samples: of its row r = rows[m], the token is that sample (0 if there was none), pos and
		// slots are those of the next position, the counter of its params is one more and the token
		// their last; the bit of its token is set if it has a bitmap of N bits, and the token's
		// count is one more, up to MaxCount, if it has a row of N counts of 16 bits, where the call
		// has bitmaps and counts.
		Args: []Arg{{Name: "last", Role: In, Type: "sampled"}, in("from", "i32", mRows), in("rows", "i32", mRows),
			{Name: "tokens", Role: InOut, Type: "i32"}, {Name: "pos", Role: InOut, Type: "i32"},
			{Name: "seq", Role: In, Type: "i32"},
			{Name: "slots", Role: InOut, Type: "i32"}, pages, {Name: "params", Role: InOut, Type: "params"},
			{Name: "seen", Role: InOut, Type: "bits", Optional: true},
			{Name: "counts", Role: InOut, Type: "u16", Optional: true}},
		Cost:     func(d Dims) Cost { return Cost{HBM: i64(d.M) * 64} },
		Examples: []Dims{{M: 1, N: 2048}, {M: 70, N: 154880}},
		Help:     "sampled tokens become the next step's inputs"}),
	each("embed", []Format{F32, BF16}, func(f Format) Kernel {
		return Kernel{Class: Embed, Pipe: OnVector,
			Args: []Arg{{Name: "table", Role: Weight, Type: "weight"}, in("tokens", "i32", mRows), out("y", mn)},
			Cost: func(d Dims) Cost { return Cost{HBM: i64(d.M) * (i64(d.N)*4 + WeightBytes(f, 1, i64(d.N)))} },
			// N is the width of a row.
			Examples: []Dims{{M: 1, N: 256}, {M: 7, N: 1536}},
			Help:     "rows of the embedding table"}
	}),
	one(Kernel{Name: "rms_norm", Class: Norm, Pipe: OnVector,
		Args:    []Arg{in("x", "f32", mk), in("w", "f32", kCols), out("y", mk)},
		Scalars: []string{"eps"}, MaxDiff: 2e-6,
		Cost: func(d Dims) Cost {
			return Cost{HBM: 4 * (2*i64(d.M)*i64(d.K) + i64(d.K)), FLOPs: 4 * i64(d.M) * i64(d.K)}
		},
		Examples: []Dims{{M: 1, K: 256}, {M: 5, K: 2048}},
		Help:     "y = x / rms(x) * w"}),
	one(Kernel{Name: "add_norm", Class: Norm, Pipe: OnVector,
		Args:    []Arg{in("part", "f32", mn), inout("x", mn), in("w", "f32", nCols), out("y", mn)},
		Scalars: []string{"eps"}, MaxDiff: 2e-6,
		Cost: func(d Dims) Cost {
			return Cost{HBM: 4 * (4*i64(d.M)*i64(d.N) + i64(d.N)), FLOPs: 5 * i64(d.M) * i64(d.N)}
		},
		Examples: []Dims{{M: 1, N: 256}, {M: 5, N: 1536}},
		Help:     "x += part; y = x / rms(x) * w"}),
	each("gemm", []Format{F32, BF16, FP8, FP8B, FP4, "fp4a4", "fp4a8"}, func(f Format) Kernel {
		w, pipe, diff := numbers(f)
		return Kernel{Class: productClass(w), Pipe: pipe, MaxDiff: diff,
			Args: []Arg{weight, in("x", "f32", mk), out("y", mn)}, Scalars: exact,
			Cost: func(d Dims) Cost { return product(w, 1, d.M, d.N, d.K) },
			Examples: []Dims{{M: 1, N: 48, K: 128}, {M: 1, N: 1536, K: 1536}, {M: 3, N: 80, K: 256},
				{M: 64, N: 256, K: 512}, {M: 33, N: 200, K: 1536}},
			Help: "y = x wᵀ, " + format(f) + " weights"}
	}),
	each("q_absorb", []Format{F32, BF16}, func(f Format) Kernel {
		return Kernel{Class: Class("gemm." + string(f)), Pipe: OnMatrix, MaxDiff: 1e-5,
			// A row of q is Heads times [nope K | rope]; a row of y is Heads times [latent N | rope].
			Args: []Arg{weight, in("q", "f32", func(d Dims) int64 { return i64(d.M) * i64(d.Heads) * i64(d.K+d.Rope) }),
				rope, in("pos", "i32", mRows), out("y", func(d Dims) int64 {
					return i64(d.M) * i64(d.Heads) * i64(d.N+d.Rope)
				})}, Scalars: exact,
			Cost:     func(d Dims) Cost { return product(f, d.Heads, d.M, d.N, d.K) },
			Examples: []Dims{{M: 1, Heads: 1, N: 64, K: 32, Rope: 16}, {M: 9, Heads: 8, N: 512, K: 192, Rope: 64}},
			Help:     "queries into the latent space, rotary part rotated"}
	}),
	each("v_up", []Format{F32, BF16}, func(f Format) Kernel {
		return Kernel{Class: Class("gemm." + string(f)), Pipe: OnMatrix, MaxDiff: 1e-5,
			// A row of x is Heads times [latent K]; a row of y is Heads times [value N].
			Args: []Arg{weight, in("x", "f32", func(d Dims) int64 { return i64(d.M) * i64(d.Heads) * i64(d.K) }),
				out("y", func(d Dims) int64 { return i64(d.M) * i64(d.Heads) * i64(d.N) })}, Scalars: exact,
			Cost:     func(d Dims) Cost { return product(f, d.Heads, d.M, d.N, d.K) },
			Examples: []Dims{{M: 1, Heads: 1, N: 32, K: 64}, {M: 9, Heads: 8, N: 256, K: 512}},
			Help:     "attention's latent output up to the heads' values"}
	}),
	each("latent_write", []Format{F32, BF16, FP8}, func(f Format) Kernel {
		return Kernel{Class: CacheIn, Pipe: OnVector, MaxDiff: cacheDiff(f),
			// A row of x is [latent K | rope].
			Args: []Arg{in("x", "f32", func(d Dims) int64 { return i64(d.M) * i64(d.K+d.Rope) }), in("w", "f32", kCols),
				rope, in("pos", "i32", mRows), in("slots", "i32", mRows),
				{Name: "cache", Role: InOut, Type: string(f)}},
			Scalars: []string{"eps"},
			Cost: func(d Dims) Cost {
				return Cost{HBM: i64(d.M) * (4*i64(d.K+d.Rope) + int64(LatentEntry(f, int(d.K), int(d.Rope)))),
					FLOPs: 6 * i64(d.M) * i64(d.K)}
			},
			Examples: []Dims{{M: 1, K: 64, Rope: 16}, {M: 70, K: 512, Rope: 64}},
			Help:     "norm and rotate a token's latent, into the cache"}
	}),
	each("index_write", []Format{F32, BF16, FP8}, func(f Format) Kernel {
		return Kernel{Class: Indexer, Pipe: OnVector, MaxDiff: cacheDiff(f),
			Args: []Arg{in("x", "f32", mk), in("w", "f32", kCols), in("b", "f32", kCols),
				rope, in("pos", "i32", mRows), in("slots", "i32", mRows),
				{Name: "cache", Role: InOut, Type: string(f)}},
			Scalars: []string{"eps"},
			Cost: func(d Dims) Cost {
				return Cost{HBM: i64(d.M) * (4*i64(d.K) + int64(IndexEntry(f, int(d.K)))),
					FLOPs: 8 * i64(d.M) * i64(d.K)}
			},
			Examples: []Dims{{M: 1, K: 32, Rope: 16}, {M: 70, K: 128, Rope: 64}},
			Help:     "norm and rotate a token's indexer key, into its cache"}
	}),
	each("index_logits", []Format{F32, BF16, FP8}, func(f Format) Kernel {
		return Kernel{Class: Indexer, Pipe: OnMatrix, MaxDiff: 1e-5,
			// scores[m, s] for s <= pos[m]; a row of scores is N wide. The first Rope values of q's
			// heads are rotated here, and then rounded to BF16 where that is asked for and keys are not float32.
			Args: []Arg{in("q", "f32", func(d Dims) int64 { return i64(d.M) * i64(d.Heads) * i64(d.K) }),
				in("hw", "f32", func(d Dims) int64 { return i64(d.M) * i64(d.Heads) }),
				rope, {Name: "cache", Role: In, Type: string(f)}, pages, in("seq", "i32", mRows),
				in("pos", "i32", mRows), out("scores", mn)},
			Scalars: []string{"scale", rounded},
			Cost: func(d Dims) Cost {
				return Cost{HBM: d.Slots*int64(IndexEntry(f, int(d.K))) + 4*d.Ctx + 4*i64(d.M)*i64(d.Heads)*i64(d.K+1),
					FLOPs: d.Ctx*i64(d.Heads)*(2*i64(d.K)+3) + 3*i64(d.M)*i64(d.Heads)*i64(d.Rope)}
			},
			Examples: []Dims{{M: 1, N: 128, Heads: 8, K: 32, Rope: 16, Slots: 100, Ctx: 100},
				{M: 5, N: 320, Heads: 32, K: 128, Rope: 64, Slots: 300, Ctx: 1490},
				{M: 2, N: 2048, Heads: 32, K: 128, Rope: 64, Slots: 3000, Ctx: 3000}},
			Help: "scores[s] = Σ heads w · relu(rotated q · k[s])"}
	}),
	one(Kernel{Name: "index_topk", Class: Indexer, Pipe: OnVector,
		Args: []Arg{in("scores", "f32", mn), in("pos", "i32", mRows),
			{Name: "sel", Role: Out, Type: "i32", Len: mTopK}},
		Cost: func(d Dims) Cost {
			return Cost{HBM: 4*d.Ctx + 4*i64(d.M)*i64(d.TopK), FLOPs: d.Ctx}
		},
		Examples: []Dims{{M: 1, N: 128, TopK: 64, Ctx: 100}, {M: 5, N: 4096, TopK: 2048, Ctx: 20000},
			{M: 3, N: 40960, TopK: 2048, Ctx: 90000}},
		Help: "positions of the best scores, ascending; -1 past the end"}),
	each("mla_attend", []Format{F32, BF16, FP8}, func(f Format) Kernel {
		return Kernel{Class: Attention, Pipe: OnMatrix, MaxDiff: 1e-5,
			// A row of q is Heads times [latent K | rope]. TopK 0: sel is none and a row attends to 0..pos, at most N
			// positions; N 0: no bound is known.
			Args: []Arg{in("q", "f32", func(d Dims) int64 { return i64(d.M) * i64(d.Heads) * i64(d.K+d.Rope) }),
				{Name: "cache", Role: In, Type: string(f)}, pages, in("seq", "i32", mRows), in("pos", "i32", mRows),
				{Name: "sel", Role: In, Type: "i32", Len: mTopK, Optional: true}, out("y", func(d Dims) int64 {
					return i64(d.M) * i64(d.Heads) * i64(d.K)
				})},
			Scalars: []string{"scale"},
			Cost: func(d Dims) Cost {
				return Cost{HBM: d.Slots*int64(LatentEntry(f, int(d.K), int(d.Rope))) +
					4*i64(d.M)*i64(d.Heads)*i64(2*d.K+d.Rope),
					FLOPs: d.Ctx * i64(d.Heads) * (4*i64(d.K) + 2*i64(d.Rope))}
			},
			Examples: []Dims{{M: 1, Heads: 1, K: 64, Rope: 16, Slots: 100, Ctx: 100},
				{M: 5, Heads: 8, K: 64, Rope: 16, TopK: 64, Slots: 300, Ctx: 320},
				{M: 3, Heads: 8, K: 512, Rope: 64, TopK: 2048, Slots: 5000, Ctx: 6144},
				{M: 2, Heads: 10, K: 512, Rope: 64, Slots: 3000, Ctx: 5500}},
			Help: "latent attention over the cache, read in place"}
	}),
	one(Kernel{Name: "kv_cast_fp8", Op: "kv_cast", Format: FP8, Class: CacheCast, Pipe: OnVector, MaxDiff: 1.0 / 256,
		// The first Slots entries of an FP8 cache as a BF16 cache. Only replay's what-if calls it.
		Args: []Arg{{Name: "cache", Role: In, Type: string(FP8)}, {Name: "pool", Role: Out, Type: string(BF16)}},
		Cost: func(d Dims) Cost {
			k, r := int(d.K), int(d.Rope)
			return Cost{HBM: d.Slots * int64(LatentEntry(FP8, k, r)+LatentEntry(BF16, k, r)), FLOPs: d.Slots * i64(d.K)}
		},
		Examples: []Dims{{K: 64, Rope: 16, Slots: 100}, {K: 512, Rope: 64, Slots: 192}},
		Help:     "a copy of the latent cache in BF16: the fault that replay can add"}),
	one(Kernel{Name: "silu_mul", Class: Act, Pipe: OnVector, MaxDiff: 1e-5,
		// A row of x is [gate N | up N].
		Args:     []Arg{in("x", "f32", func(d Dims) int64 { return 2 * i64(d.M) * i64(d.N) }), out("y", mn)},
		Cost:     func(d Dims) Cost { return Cost{HBM: 12 * i64(d.M) * i64(d.N), FLOPs: 5 * i64(d.M) * i64(d.N)} },
		Examples: []Dims{{M: 1, N: 64}, {M: 17, N: 1536}},
		Help:     "y = silu(gate) · up"}),
	one(Kernel{Name: "moe_route", Class: Route, Pipe: OnVector, MaxDiff: 1e-6,
		// experts ascend within a row.
		Args: []Arg{in("logits", "f32", func(d Dims) int64 {
			return i64(d.M) * i64(d.Groups)
		}), in("bias", "f32", func(d Dims) int64 { return i64(d.Groups) }),
			{Name: "experts", Role: Out, Type: "i32", Len: mTopK},
			{Name: "weights", Role: Out, Type: "f32", Len: mTopK}},
		Scalars: []string{"scale", "n_group", "topk_group", "norm"},
		Cost: func(d Dims) Cost {
			return Cost{HBM: 4*i64(d.M)*i64(d.Groups) + 8*i64(d.M)*i64(d.TopK), FLOPs: 4 * i64(d.M) * i64(d.Groups)}
		},
		Examples: []Dims{{M: 1, Groups: 16, TopK: 4}, {M: 9, Groups: 256, TopK: 8}},
		Help:     "the experts of each token and their weights"}),
	each("moe_up", []Format{F32, BF16, FP8B, FP4, "fp4a4", "fp4a8"}, func(f Format) Kernel {
		w, pipe, diff := numbers(f)
		return Kernel{Class: productClass(w) + ".moe", Pipe: pipe, MaxDiff: diff,
			// The weight has Groups matrices [gate N | up N, K]; y has a row of N for each (token, choice).
			Args: []Arg{weight, in("x", "f32", mk), in("experts", "i32", mTopK), out("y", func(d Dims) int64 {
				return i64(d.M) * i64(d.TopK) * i64(d.N)
			})}, Scalars: exact,
			Cost: func(d Dims) Cost {
				return experts(w, d, 2*d.N, d.K, 4*(i64(d.M)*i64(d.K)+i64(d.M)*i64(d.TopK)*i64(d.N)))
			},
			Examples: []Dims{{M: 1, N: 16, K: 256, Groups: 16, TopK: 4}, {M: 64, N: 16, K: 256, Groups: 16, TopK: 4},
				{M: 1, N: 512, K: 1536, Groups: 64, TopK: 8}, {M: 5, N: 64, K: 1536, Groups: 64, TopK: 8},
				{M: 1, N: 32, K: 6144, Groups: 16, TopK: 4}, {M: 17, N: 48, K: 6144, Groups: 16, TopK: 4}},
			Help: "y = silu(x gateᵀ) · (x upᵀ) by expert, " + format(f) + " weights"}
	}),
	each("moe_down", []Format{F32, BF16, FP8B, FP4, "fp4a4", "fp4a8"}, func(f Format) Kernel {
		w, pipe, diff := numbers(f)
		return Kernel{Class: productClass(w) + ".moe", Pipe: pipe, MaxDiff: diff,
			// y already holds what the experts' sum is added to; experts are added in ascending order.
			Args: []Arg{weight, in("x", "f32", func(d Dims) int64 { return i64(d.M) * i64(d.TopK) * i64(d.K) }),
				in("experts", "i32", mTopK), in("weights", "f32", mTopK), inout("y", mn)}, Scalars: exact,
			Cost: func(d Dims) Cost {
				return experts(w, d, d.N, d.K, 4*(i64(d.M)*i64(d.TopK)*i64(d.K)+2*i64(d.M)*i64(d.N)))
			},
			Examples: []Dims{{M: 1, N: 256, K: 16, Groups: 16, TopK: 4}, {M: 64, N: 256, K: 16, Groups: 16, TopK: 4},
				{M: 1, N: 1536, K: 512, Groups: 64, TopK: 8}, {M: 5, N: 1536, K: 64, Groups: 64, TopK: 8}},
			Help: "y += Σ experts weight · (x downᵀ), " + format(f) + " weights"}
	}),
	one(Kernel{Name: "gather_rows", Class: Copy, Pipe: OnVector,
		Args:     []Arg{{Name: "x", Role: In, Type: "f32"}, in("rows", "i32", mRows), out("y", mn)},
		Cost:     func(d Dims) Cost { return Cost{HBM: 8 * i64(d.M) * i64(d.N)} },
		Examples: []Dims{{M: 1, N: 256}, {M: 5, N: 1536}},
		Help:     "rows by number: those whose logits are wanted; pages that are copied"}),
	one(Kernel{Name: "all_reduce_norm", Class: Comm, Pipe: OnVector, MaxDiff: 2e-6,
		Args:    []Arg{in("part", "f32", mn), inout("x", mn), in("w", "f32", nCols), out("y", mn)},
		Scalars: []string{"eps"},
		Cost: func(d Dims) Cost {
			return Cost{HBM: 4 * (4*i64(d.M)*i64(d.N) + i64(d.N)),
				Wire:  4 * i64(d.M) * i64(d.N) * 2 * i64(d.Ranks-1) / max(1, i64(d.Ranks)),
				FLOPs: i64(d.M) * i64(d.N) * (i64(d.Ranks) + 5)}
		},
		Examples: []Dims{{M: 1, N: 256, Ranks: 1}, {M: 5, N: 1536, Ranks: 1}},
		Help:     "x += Σ ranks part, in the ranks' order; y = x / rms(x) * w"}),
	one(Kernel{Name: "all_gather", Class: Comm, Pipe: OnVector,
		// N is the width of the whole row; each rank has N/Ranks columns.
		Args: []Arg{in("part", "f32", func(d Dims) int64 {
			return i64(d.M) * i64(d.N) / max(1, i64(d.Ranks))
		}), out("y", mn)},
		Cost: func(d Dims) Cost {
			return Cost{HBM: 8 * i64(d.M) * i64(d.N),
				Wire: 4 * i64(d.M) * i64(d.N) * i64(d.Ranks-1) / max(1, i64(d.Ranks))}
		},
		Examples: []Dims{{M: 1, N: 256, Ranks: 1}, {M: 5, N: 2048, Ranks: 1}},
		Help:     "the ranks' columns side by side"}),
	one(Kernel{Name: "all_gather_rows", Class: Comm, Pipe: OnVector,
		// Each rank has M rows of its own. Row m of rank r becomes row to[m·Ranks + r] of y, which has K; -1: none.
		Args: []Arg{in("x", "f32", mn), in("to", "i32", mRanks), out("y", kn)},
		Cost: func(d Dims) Cost {
			own := i64(d.K) * i64(d.N) / max(1, i64(d.Ranks))
			return Cost{HBM: 4 * (own + i64(d.K)*i64(d.N)), Wire: 4 * (i64(d.K)*i64(d.N) - own)}
		},
		Examples: []Dims{
			{M: 1, N: 256, K: 1, Ranks: 1}, {M: 5, N: 1536, K: 4, Ranks: 1}, {M: 33, N: 256, K: 33, Ranks: 1}},
		Help: "rows of all ranks, one list"}),
	one(Kernel{Name: "reduce_scatter_norm", Class: Comm, Pipe: OnVector, MaxDiff: 2e-6,
		// part has the K rows of all_gather_rows, to says which of them is a rank's row m; -1: none, and x and y of
		// that row may be anything.
		Args: []Arg{in("part", "f32", kn), in("to", "i32", mRanks), inout("x", mn), in("w", "f32", nCols),
			out("y", mn)},
		Scalars: []string{"eps"},
		Cost: func(d Dims) Cost {
			own := i64(d.K) * i64(d.N) / max(1, i64(d.Ranks)) // values that a rank sums
			return Cost{
				HBM:   4 * (i64(d.K)*i64(d.N) + 3*own + i64(d.N)),
				Wire:  4 * own * i64(d.Ranks-1),
				FLOPs: own * (i64(d.Ranks) + 5),
			}
		},
		Examples: []Dims{
			{M: 1, N: 256, K: 1, Ranks: 1}, {M: 5, N: 1536, K: 5, Ranks: 1}, {M: 33, N: 256, K: 33, Ranks: 1}},
		Help: "x += Σ ranks part of the rank's own rows, in the ranks' order; y = x / rms(x) * w"}),
	one(Kernel{Name: "accept", Class: Sample, Pipe: OnVector,
		// tips: M pairs (first row of logits, rows of logits n) among N, which are of the step's rows. A tip goes on
		// from its row of logits a < n, the first whose sample is not the token of the step's row
		// behind it: from is that one's row of the step, at_pos, at_seq and at_slots what it has,
		// at_params its own with the counter one on and its sample as the last token, without
		// log-probabilities, mask and forced token. next of the step's row of any row of logits is its
		// sample (0 if there was none).
		Args: []Arg{{Name: "sampled", Role: In, Type: "sampled"}, in("tips", "i32", func(d Dims) int64 {
			return 2 * i64(d.M)
		}), in("rows", "i32", nCols),
			{Name: "tokens", Role: In, Type: "i32"}, {Name: "pos", Role: In, Type: "i32"},
			{Name: "seq", Role: In, Type: "i32"}, {Name: "slots", Role: In, Type: "i32"},
			{Name: "params", Role: In, Type: "params"}, {Name: "next", Role: InOut, Type: "i32"},
			{Name: "from", Role: Out, Type: "i32", Len: mRows},
			{Name: "at_pos", Role: Out, Type: "i32", Len: mRows}, {Name: "at_seq", Role: Out, Type: "i32", Len: mRows},
			{Name: "at_slots", Role: Out, Type: "i32", Len: mRows},
			{Name: "at_params", Role: Out, Type: "params"}},
		Cost:     func(d Dims) Cost { return Cost{HBM: i64(d.M)*128 + i64(d.N)*16} },
		Examples: []Dims{{M: 1, N: 1}, {M: 3, N: 7}, {M: 70, N: 300}},
		Help:     "drafts that samples confirm, and where the next ones go on"}),
	one(Kernel{Name: "sample", Class: Sample, Pipe: OnVector,
		// params: M SampleParams; seen and masks: bitmaps of N bits; counts: rows of N 16-bit
		// numbers; entries: Entry; each may be none if no row asks for it. y: M Sampled.
		Args: []Arg{in("logits", "f32", mn), {Name: "params", Role: In, Type: "params"},
			{Name: "seen", Role: In, Type: "bits", Optional: true}, {Name: "y", Role: Out, Type: "sampled"},
			{Name: "counts", Role: In, Type: "u16", Optional: true},
			{Name: "masks", Role: In, Type: "bits", Optional: true},
			{Name: "entries", Role: In, Type: "entries", Optional: true}},
		Cost: func(d Dims) Cost {
			return Cost{HBM: 4*i64(d.M)*i64(d.N) + i64(d.N)*d.Slots/8, FLOPs: 4 * i64(d.M) * i64(d.N)}
		},
		// N is the width of a row of logits, TopK how many of them are tokens (0: all), Slots how
		// many bits of each token the rows' masks, bitmaps and counts have.
		Examples: []Dims{{M: 1, N: 2048}, {M: 5, N: 154880, TopK: 154856}, {M: 40, N: 2048}},
		Help:     "the next tokens and their log-probabilities"}),
)
