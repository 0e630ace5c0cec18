package plan

// Blackwell of workstations: mma.sync takes 4-bit operands and their block scales. All else
// is portable; a block has less than half of the shared memory of the others.
var sm120 = Architecture{Name: "sm120", Major: 12, Minor: 0, Units4: MMA4, Variants: mma4}

// mma4 are for weights that were packed for mma.sync with block scales. Never run on such
// a GPU.
var mma4 = []Variant{
	{Name: "gemm fp4 mma", Op: "gemm", Formats: fp4, exact: either, When: isMMA4, Build: planGemmMMA4,
		Why: "4-bit inputs as they are"},
	{Name: "moe_up mma", Op: "moe_up", Formats: fp4, exact: either, When: isMMA4, Build: planUpMMA4, Why: "likewise"},
	{Name: "moe_down mma", Op: "moe_down", Formats: fp4, exact: either, When: isMMA4, Build: planDownMMA4,
		Why: "likewise"},
}
