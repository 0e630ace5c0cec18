package plan

// Blackwell of data centres: tcgen05.mma takes 4-bit operands and their block scales from
// tensor memory. All else is portable.
var sm100 = Architecture{Name: "sm100", Major: 10, Minor: 0, Units4: Tensor4, Variants: tensor4}

// tensor4 are for weights that were packed for tcgen05. Never run on such a GPU.
var tensor4 = []Variant{
	{Name: "gemm fp4 tcgen05", Op: "gemm", Formats: fp4, exact: either, When: isTensor4, Build: planGemmTensor4,
		Why: "4-bit inputs as they are"},
	{Name: "moe_up tcgen05", Op: "moe_up", Formats: fp4, exact: either, When: isTensor4, Build: planUpTensor4,
		Why: "likewise"},
	{Name: "moe_down tcgen05", Op: "moe_down", Formats: fp4, exact: either, When: isTensor4, Build: planDownTensor4,
		Why: "likewise"},
}
