// What the experts' products have in common.
#pragma once
#include "mma/rounding.cuh"
#include "moe/params.h"

// k is cut into slices whose sums are added in ascending order, whoever computes
// them: of the units of 64 columns (BF16: of 16) slice s has ceil(kt / slices) from
// s * ceil(kt / slices) on. The slices are 16 for up and 1 for down. With FP4 weights
// the products with the rows' upper terms and those with their lower terms are
// chains of their own, and a slice's sum is the sum of both.
