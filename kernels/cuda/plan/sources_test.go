package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/layout"
)

func sources(t *testing.T) map[string]*layout.Source {
	t.Helper()
	all, err := layout.Read("../src")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d sources, %v", len(all), err)
	}
	return all
}

// passed is what kernels are given, with the file that says what it is.
var passed = []struct {
	file, name string
	of         any
}{
	{"absorb.cuh", "AbsorbP", absorbP{}},
	{"attend.cu", "CastP", castP{}},
	{"attend.cuh", "AttendP", attendP{}},
	{"blocks.cu", "BlocksP", blocksP{}},
	{"broad.cu", "BroadP", broadP{}},
	{"bundle.cu", "BundleP", bundleP{}},
	{"comm.cu", "BarrierP", barrierP{}},
	{"host.cu", "CarryP", carryP{}},
	{"host.cu", "ClockP", clockP{}},
	{"comm.cu", "CommP", commP{}},
	{"host.cu", "FaultP", faultP{}},
	{"comm.cu", "SumP", sumP{}},
	{"exact.cu", "ExactP", exactP{}},
	{"fp4a4.cuh", "Fp4P", fp4P{}},
	{"fp4a4.cuh", "Pack4P", packP{}},
	{"fp4mma.cu", "Combine4P", combine4P{}},
	{"gemm.cu", "GemmP", gemmP{}},
	{"heads.cu", "HeadsP", headsP{}},
	{"indexer.cuh", "IndexP", indexP{}},
	{"moe.cu", "GroupP", groupP{}},
	{"moe.cuh", "MoeP", moeP{}},
	{"opening.cuh", "OpeningP", openingP{}},
	{"opening.cuh", "UpP", upP{}},
	{"pack.cu", "PackP", packP{}},
	{"product.cuh", "ProductP", productP{}},
	{"route.cuh", "RouteP", routeP{}},
	{"rows.cu", "QuantP", quantP{}},
	{"rows.cuh", "RowsP", rowsP{}},
	{"sample.cu", "FeedP", feedP{}},
	{"sample.cu", "Params", kernels.SampleParams{}},
	{"sample.cu", "Sampled", kernels.Sampled{}},
	{"sample.cu", "SampleP", sampleP{}},
	{"team.cu", "TeamP", teamP{}},
	{"topk.cuh", "TopP", topP{}},
	{"wide.cu", "WideP", wideP{}},
	{"wide_moe.cuh", "WideMoeP", wideMoeP{}},
}

// TestStructs: the fields that kernels are given lie where they look for them, by
// name, offset and size.
func TestStructs(t *testing.T) {
	src := sources(t)
	plain := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
	for _, p := range passed {
		of := reflect.TypeOf(p.of)
		if src[p.file] == nil {
			t.Errorf("no src/%s", p.file)
			continue
		}
		fields, size, err := src[p.file].Fields(p.name)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(fields) != of.NumField() || size != int64(of.Size()) {
			t.Errorf("%s of %s has %d fields in %d bytes, %v has %d in %d", p.name, p.file, len(fields), size, of, of.NumField(), of.Size())
			continue
		}
		for i, f := range fields {
			g := of.Field(i)
			if f.Offset != int64(g.Offset) || f.Size != int64(g.Type.Size()) || f.Name != "" && g.Name != "_" && plain(f.Name) != plain(g.Name) {
				t.Errorf("%s of %s has %s at %d with %d bytes, %v has %s at %d with %d", p.name, p.file, f.Name, f.Offset, f.Size, of, g.Name, g.Offset, g.Type.Size())
			}
		}
	}
}

// TestStructsAreAll: no parameters of a kernel are left out above.
func TestStructsAreAll(t *testing.T) {
	known := map[string]bool{"TeamsP": true} // of two TeamP
	for _, p := range passed {
		known[p.name] = true
		known[reflect.TypeOf(p.of).Name()] = true
	}
	for file, s := range sources(t) {
		for _, name := range s.Structs() {
			if strings.HasSuffix(name, "P") && !known[name] {
				t.Errorf("%s of src/%s", name, file)
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.TypeSpec); ok && strings.HasSuffix(d.Name.Name, "P") && !known[d.Name.Name] {
				t.Errorf("%s of %s", d.Name.Name, name)
			}
			return true
		})
	}
}

// TestSizes: what Go and the kernels both state is the same, and shared memory that
// blocks are given is as much as they want.
func TestSizes(t *testing.T) {
	src := sources(t)
	of := func(name string) latentWay {
		ways := slices.Concat(latentBF16, latentFP8)
		return ways[slices.IndexFunc(ways, func(w latentWay) bool { return w.entry == "mla_attend_"+name })]
	}
	way := func(name string) int64 { return int64(of(name).shared) }
	ways := func(name string) int64 { return int64(of(name).threads) }
	down := moeP{m: 8, n: 6144, k: 256, topk: 8, groups: 256, ldx: 256, ldy: 6144}
	downRoom, ok := down.downAll(227 << 10)
	if !ok {
		t.Fatal("no room for 8 tokens' down products")
	}
	fp4 := &Weight{Format: kernels.FP4, Count: 1, Rows: 64, Cols: 64}
	if _, err := fp4.Layout(); err != nil {
		t.Fatal(err)
	}
	ring := moeP{m: 2, k: ringK, topk: 1, groups: 1, slots: 1}
	for _, c := range []struct {
		file, expr string
		has        int64
		spare      int64 // bytes that may be too many
	}{
		{"attend.cu", "kTile", attendTile, 0},
		{"attend.cuh", "kPage", kernels.PageTokens, 0},
		{"attend_few.cu", "(sizeof(AttendShared<1>) + 127) / 128 * 128 + kLeaf * kEntry", way("few_16"), 128},
		{"attend_few.cu", "(sizeof(AttendShared<2>) + 127) / 128 * 128 + 2 * kLeaf * kEntry", way("few_8"), 256},
		{"attend_few.cu", "kTeamThreads", ways("few_16"), 0},
		{"attend_few.cu", "2 * kTeamThreads", ways("few_8"), 0},
		{"attend_glm.cu", "(sizeof(AttendShared) + 127) / 128 * 128 + kPairs * kTile * kPitch", way("glm_bf16"), 256},
		{"attend_glm.cu", "kThreads", ways("glm_bf16"), 0},
		{"attend_glm.cu", "kBlocks", int64(of("glm_bf16").blocks), 0},
		{"attend_rows.cu", "sizeof(Shared)", rowsShared, 0},
		{"attend_rows.cu", "sizeof(Left<4>)", rowsLeft, 0},
		{"attend_rows.cu", "kThreads", ways("rows_fp8"), 0},
		{"attend_rows.cu", "kLeaf * kLeaves", rowsReach, 0},
		{"broad.cu", "kWidth", broadWidth, 0},
		{"broad.cu", "kSlots", broadSlots, 0},
		{"broad.cu", "kInbox", broadInbox, 0},
		{"brief.cuh", "kBriefColumns * 16", briefColumns, 0},
		{"bundle.cu", "kSegments", maxSegments, 0},
		{"held.cuh", "kHeldColumns * 16", heldColumns, 0},
		{"held.cuh", "kHeldTiles", heldTiles, 0},
		{"held.cuh", "kHeldThreads", heldThreads, 0},
		{"held.cuh", "kHeldBars", heldBars, 0},
		{"held.cuh", "(kSumBytes + 511) / 512", heldSteps, 0},
		{"bundle.cu", "kProductBf16", int64(opProductBF16), 0},
		{"bundle.cu", "kProductFp8", int64(opProductFP8), 0},
		{"bundle.cu", "kNorm", int64(opNorm), 0},
		{"bundle.cu", "kLatent", int64(opLatent), 0},
		{"bundle.cu", "kKey", int64(opKey), 0},
		{"bundle.cu", "kRotary", int64(opRotary), 0},
		{"bundle.cu", "kSilu", int64(opSilu), 0},
		{"bundle.cu", "kRoute", int64(opRoute), 0},
		{"comm.cu", "kMaxRanks", MaxRanks, 0},
		{"comm.cu", "kParts", rowParts, 0},
		{"comm.cu", "kPairs", rowPairs, 0},
		{"comm.cu", "kSend", sendPhase, 0},
		{"comm.cu", "kSum", sumPhase, 0},
		{"comm.cu", "kReceive", receivePhase, 0},
		{"host.cu", "kCarried", copyWords, 0},
		{"device.cuh", "kEnds", StampEnds, 0},
		{"device.cuh", "kStampPlane", MaxStamps * StampBytes / 8, 0},
		{"experts_down.cu", "(DownRoom<15, 4>::there + kDownExperts * 9 / 8 * 4 + 64 * 16 + 8 * DownRoom<15, 4>::kY * 4 + 127) / 128 * 128 + kDownSlots * DownRoom<15, 4>::kItem", int64(downRoom), 0},
		{"experts_ring.cu", "16 * kUnits * 64", ringK, 0},
		{"experts_ring.cu", "kThreads", ringThreads, 0},
		{"experts_ring.cu", "sizeof(UpRing) + 4 * (6 + 2 + kThreads / 32)", int64(ring.inRing()), 0},
		{"fp4.cuh", "4 * kFp4Unit", fp4.Each, 0},
		{"indexer.cuh", "kPage", kernels.PageTokens, 0},
		{"indexer_glm.cu", "sizeof(Pages<1>)", int64(indexPagesShared[kernels.BF16]), 0},
		{"indexer_glm.cu", "sizeof(Pages<2>)", int64(indexPagesShared[kernels.FP8]), 0},
		{"indexer_glm.cu", "sizeof(Rows)", indexRowsShared, 0},
		{"indexer_glm.cu", "kQueries", indexQueries, 0},
		{"moe.cuh", "kUpSlices", upWarps, 0},
		{"moe.cuh", "kUpSlices", upSlices, 0},
		{"opening.cuh", "sizeof(Opening)", openingBytes, 0},
		{"opening.cuh", "kOpeningRows", openingRows, 0},
		{"opening.cuh", "kOpeningTiles", openingTiles, 0},
		{"opening.cuh", "kWarps * kOpeningSteps * 16", openingK, 0},
		{"route.cuh", "32 * kOfLane", inRegisters, 0},
		{"route.cuh", "8 * sizeof(RouteMemory)", routeMemory, 0},
		{"rows.cu", "kEmbedded", embedded, 0},
		{"rows.cuh", "kPage", kernels.PageTokens, 0},
		{"sample.cu", "kAlternatives", kernels.MaxLogprobs, 0},
		{"sample.cu", "kPageTokens", kernels.PageTokens, 0},
		{"sample.cu", "kSlices", sampleSlices, 0},
		{"team.cu", "sizeof(TeamsP)", int64(unsafe.Sizeof([teamCalls]teamP{})), 0},
		{"topk_cluster.cu", "sizeof(TopShared<8, 512, 32, true>)", int64(topShapes[3].shared), 0},
		{"topk_cluster.cu", "sizeof(TopShared<8, 1024, 32, false>)", int64(topShapes[4].shared), 0},
		{"wide_many.cu", "sizeof(UpShared) + 1024", manyShared, 0},
		{"wide_many.cu", "kUpThreads + 128", 384, 0},
		{"wide_many.cu", "4 * (kSizes + 1)", 36, 0},
		{"wide_moe.cu", "kDownRows", downRows, 0},
		{"wide_moe.cu", "kDownThreads / 32 * kDownRing", downRing, 0},
		{"wide_moe.cu", "sizeof(Tile)", downTile, 8},
		{"wide_moe.cu", "sizeof(UpShared) + 1024", upShared, 0},
	} {
		s := src[c.file]
		if s == nil {
			t.Errorf("no src/%s", c.file)
		} else if wants, err := s.Eval(c.expr); err != nil || c.has < wants || c.has > wants+c.spare {
			t.Errorf("%s of src/%s is %d, Go has %d, %v", c.expr, c.file, wants, c.has, err)
		}
	}
}
