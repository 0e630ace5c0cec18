//go:build cuda

package cuda

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// The compiled kernels, one image a source file; make kernels writes them.
//
//go:embed images/*.fatbin
var images embed.FS

// entries lists the kernels of each image.
var entries = map[string]string{
	"pack":         "pack_bf16 pack_fp8 pack_fp4",
	"gemm":         "gemm_bf16_2_1 gemm_bf16_2_2 gemm_bf16_2_4 gemm_bf16_2_8 gemm_bf16_4_1 gemm_bf16_4_2 gemm_bf16_4_4 gemm_bf16_4_8 gemm_bf16_8_1 gemm_bf16_8_2 gemm_bf16_8_4 gemm_bf16_8_8 gemm_fp8_2_1 gemm_fp8_2_2 gemm_fp8_2_4 gemm_fp8_2_8 gemm_fp8_8_1 gemm_fp8_8_2 gemm_fp8_8_4 gemm_fp8_8_8 gemm_fp4_8 gemm_fp4_64 gemm_f32",
	"bundle":       "bundle_1 bundle_8 bundle_brief bundle_held",
	"broad":        "broad_bf16 broad_fp8",
	"moe":          "moe_group moe_up_bf16_8 moe_up_bf16_32 moe_up_f32 moe_down_bf16 moe_down_f32 moe_down_bf16_8 moe_down_bf16_32 moe_combine",
	"experts_up":   "experts_up_fp4_1 experts_up_fp4_2",
	"experts_ring": "experts_up_fp4_6144",
	"experts_down": "experts_down_fp4_0_1 experts_down_fp4_0_2 experts_down_fp4_256_2 experts_down_fp4_all",
	"fp4mma":       "pack_fp4a4 quant_fp4 gemm_fp4a4_8 gemm_fp4a4_32 moe_up_fp4a4_8 moe_up_fp4a4_32 moe_down_fp4a4_8 moe_down_fp4a4_32 combine_fp4a4",
	"fp4tensor":    "pack_fp4t fp4_tensor_16 fp4_tensor_32",
	"wide":         "wide_split_bf16 wide_split_fp4 wide_bf16_64 wide_bf16_128 wide_fp4_64 wide_fp4_128 few_bf16_16_4 few_bf16_32_4 few_bf16_64_4 few_fp4_16_4 few_fp4_32_4 few_fp4_64_4 few_bf16_16_6 few_bf16_32_6 few_bf16_64_6 few_fp4_16_6 few_fp4_32_6 few_fp4_64_6 few_sum",
	"team":         "team_bf16 team_fp8",
	"heads":        "heads_bf16 heads_gate_bf16",
	"wide_moe":     "moe_split_fp4 wide_up_fp4 wide_down_fp4",
	"wide_many":    "wide_many_fp4",
	"exact":        "exact_gemm_bf16 exact_gemm_fp8 exact_gemm_fp4 exact_up_bf16 exact_up_fp4 exact_down_bf16 exact_down_fp4",
	"rows":         "add_norm gather_rows embed quant_pairs",
	"route":        "moe_route moe_route_many",
	"attend":       "mla_attend_f32 mla_attend_bf16 mla_attend_fp8 mla_combine kv_cast",
	"attend_glm":   "mla_attend_glm_bf16",
	"attend_few":   "mla_attend_few_16 mla_attend_few_8",
	"attend_rows":  "mla_attend_rows_fp8 mla_attend_rows2_fp8 mla_attend_rows4_fp8",
	"indexer":      "index_logits_f32_1_4_0 index_logits_bf16_2_4_0 index_logits_bf16_4_4_1 index_logits_fp8_2_4_0 index_logits_fp8_4_4_1",
	"indexer_glm":  "index_pages_bf16 index_pages_fp8 index_split_bf16 index_split_fp8 index_rows_bf16 index_rows_fp8",
	"topk":         "index_topk_1_1024_8 index_topk_1_512_16 index_topk_1_1024_16",
	"topk_cluster": "index_topk_8_512_32 index_topk_8_1024_32",
	"sample":       "feed sample",
	"comm":         "reduce_norm reduce_rows gather_columns sum_parts barrier",
	"host":         "fault carry clock_read",
}

// maxSharedOptin is CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, which cu lacks.
const maxSharedOptin cu.DeviceAttribute = 97

// largeShared are the kernels that may need more than 48 KiB of shared memory.
const largeShared = "bundle_held broad_bf16 broad_fp8 index_pages_bf16 index_pages_fp8 index_rows_bf16 index_rows_fp8 index_topk_8_512_32 mla_attend_f32 mla_attend_bf16 mla_attend_fp8 mla_attend_glm_bf16 mla_attend_few_16 mla_attend_few_8 mla_attend_rows_fp8 mla_attend_rows2_fp8 mla_attend_rows4_fp8 experts_up_fp4_1 experts_up_fp4_2 experts_up_fp4_6144 experts_down_fp4_0_1 experts_down_fp4_0_2 experts_down_fp4_256_2 experts_down_fp4_all " +
	"wide_bf16_64 wide_bf16_128 wide_fp4_64 wide_fp4_128 few_bf16_16_4 few_bf16_32_4 few_bf16_64_4 few_fp4_16_4 few_fp4_32_4 few_fp4_64_4 few_bf16_16_6 few_bf16_32_6 few_bf16_64_6 few_fp4_16_6 few_fp4_32_6 few_fp4_64_6 wide_up_fp4 wide_down_fp4 wide_many_fp4 team_bf16 team_fp8 heads_bf16 heads_gate_bf16"

// loadImages loads the kernels once for all ranks of the group on a GPU.
func (d *device) loadImages(mates []*device) error {
	loaded := slices.Clone(mates)
	for _, l := range d.group.options.like {
		if r, ok := l.(*device); ok {
			loaded = append(loaded, r)
		}
	}
	for _, r := range loaded {
		if r.gpu == d.gpu {
			d.funcs = r.funcs
			return nil
		}
	}
	from := d.group.options.images
	if from == nil {
		from = images
	}
	for image, names := range entries {
		data, err := fs.ReadFile(from, "images/"+image+".fatbin")
		if err != nil {
			return err
		}
		m, err := cu.LoadFatBinary(string(data))
		if err != nil {
			return fmt.Errorf("%w: load the kernels of image %s: %w", kernels.ErrDevice, image, driver.Of(err))
		}
		for n := range strings.FieldsSeq(names) {
			if d.funcs[n], err = m.Function(n); err != nil {
				return fmt.Errorf("%w: kernel %s of image %s: %w", kernels.ErrDevice, n, image, err)
			}
		}
	}
	for n, f := range d.funcs {
		if err := driver.PreferShared(f); err != nil {
			return fmt.Errorf("%w: kernel %s: %w", kernels.ErrDevice, n, err)
		}
	}
	limit, err := cu.Device(d.gpu).Attribute(maxSharedOptin)
	if err != nil {
		return err
	}
	bundleShared := min(128<<10, limit-1024) // besides what they have at rest
	if err := errors.Join(driver.MaxShared(d.funcs["bundle_1"], bundleShared), driver.MaxShared(d.funcs["bundle_8"], bundleShared)); err != nil {
		return fmt.Errorf("%w: shared memory for bundles: %w", kernels.ErrDevice, err)
	}
	for n := range strings.FieldsSeq(largeShared) {
		if err := driver.MaxShared(d.funcs[n], limit); err != nil {
			return fmt.Errorf("%w: shared memory for %s: %w", kernels.ErrDevice, n, err)
		}
	}
	for n, w := range latentWays {
		if limit < rowsShared { // nor has such a GPU clusters of 16 blocks
			delete(d.funcs, n)
		} else if w.blocks > 8 {
			if err := driver.LargeClusters(d.funcs[n]); err != nil {
				return fmt.Errorf("%w: clusters of %s: %w", kernels.ErrDevice, n, err)
			}
		}
	}
	return nil
}
