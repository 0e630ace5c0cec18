package importer

import (
	"regexp"
	"strconv"
	"strings"
)

// formatWords are tried in order on a kernel's name: a product's format is that of
// its narrowest input. Names of libraries are words between what is no letter or digit.
var formatWords = []struct {
	re     *regexp.Regexp
	format string
}{
	{regexp.MustCompile(`(?i)fp4|e2m1|float4|ue\dm\dxf4|[^a-z]f4(gemm|[^a-z0-9])`), "fp4"},
	{regexp.MustCompile(`(?i)(^|[^a-z0-9])u?int4|w4a(16|8)|(^|[^a-z0-9])awq|[^a-z0-9]u4b8`), "int4"},
	{regexp.MustCompile(`(?i)(^|[^a-z0-9])(m?x?)fp8|e4m3|e5m2|float8|fp8_|_fp8|blockscalefp8|(^|[^a-z0-9])b?f8([^a-z0-9]|gemm|f8)|_BitInt\(8\)`), "fp8"},
	{regexp.MustCompile(`(?i)(^|[^a-z0-9])u?int8|(^|[^a-z0-9])(i8|s8|u8)+([^a-z0-9]|gemm|i32|f32)|i8816|i16832|(un)?signed char|igemm|imma`), "int8"},
	{regexp.MustCompile(`(?i)bf16|bfloat|bhalf`), "bf16"},
	{regexp.MustCompile(`(?i)(^|[^a-z0-9])(f16|fp16|half)|_Float16|f16f16|half_t|hgemm|[hs]884|h1688|h16816|hmma`),
		"fp16"},
	{regexp.MustCompile(`(?i)tf32|tfloat32|xf32|s1688(gemm|cgemm)`), "tf32"},
	{regexp.MustCompile(`(?i)dgemm|zgemm|d884gemm|f64f64|<double|double,`), "f64"},
	{regexp.MustCompile(`(?i)sgemm|cgemm|simt|ffma|f32f32|fp32|<float|float,|, float|(^|[^a-z0-9])f32([^a-z0-9]|gemm)`),
		"f32"},
}

// precision returns the number format of a matrix product's inputs as far as its
// name tells; "?": it does not.
func precision(name string) string {
	if m := nvjetTypes.FindStringSubmatch(name); m != nil {
		return nvjetFormat(name, m[1])
	}
	if m := tensileTypes.FindStringSubmatch(name); m != nil {
		return tensileFormat(m[1])
	}
	if strings.Contains(name, "arlin") {
		return scalarFormat(name)
	}
	for _, w := range formatWords {
		if w.re.MatchString(name) {
			return w.format
		}
	}
	return "?"
}

// nvjetTypes are the letters of cuBLAS' generated kernels: types of A, B (where it
// differs), accumulator and result, as in nvjet_sm90_tst_64x8.
var nvjetTypes = regexp.MustCompile(`nvjet_(?:sm\d+[af]?_)?([a-z]{3,6})_`)

func nvjetFormat(name, letters string) string {
	if strings.Contains(name, "_FP4") || strings.Contains(name, "UE4M3") {
		return "fp4"
	}
	switch letters[0] {
	case 'o':
		return "fp4"
	case 'q', 'r':
		return "fp8"
	case 'b', 'i':
		return "int8"
	case 't':
		return "bf16"
	case 'h':
		return "fp16"
	case 's': // single precision that goes through the matrix units
		return "tf32"
	case 'd':
		return "f64"
	}
	return "?"
}

// tensileTypes are those of rocBLAS' and hipBLASLt's kernels: inputs, result and
// compute type, as in Cijk_Alik_Bljk_BBS_BH.
var tensileTypes = regexp.MustCompile(`Cijk_A[a-z]+_B[a-z]+_([A-Z0-9]+)_`)

func tensileFormat(types string) string {
	for _, t := range []struct{ prefix, format string }{
		{"F4", "fp4"}, {"F6", "fp6"}, {"F8", "fp8"}, {"B8", "fp8"}, {"I8", "int8"}, {"X", "tf32"},
		{"4xi8", "int8"}, {"B", "bf16"}, {"H", "fp16"}, {"S", "f32"}, {"D", "f64"}, {"C", "f32"}, {"Z", "f64"},
	} {
		if strings.HasPrefix(types, t.prefix) {
			return t.format
		}
	}
	return "?"
}

var longArgument = regexp.MustCompile(`\b(\d{6,})l\b`)

// scalarFormat reads the types in the template arguments of vLLM's Marlin kernels:
// integers that hold exponent bits, mantissa bits, sign and more. The narrowest is
// the weights'. Older ones name the activations only.
func scalarFormat(name string) string {
	best, format := uint64(64), "?"
	for _, m := range longArgument.FindAllStringSubmatch(name, -1) {
		id, err := strconv.ParseUint(m[1], 10, 63)
		if err != nil {
			continue
		}
		exponent, mantissa, sign := id&0xff, id>>8&0xff, id>>16&1
		bits := exponent + mantissa + sign
		if exponent == 8 && mantissa == 0 || bits >= best || bits == 0 {
			continue // a scale of exponents only is no weight
		}
		f := ""
		switch {
		case bits == 4 && exponent > 0:
			f = "fp4"
		case bits == 4:
			f = "int4"
		case bits == 8 && exponent > 0:
			f = "fp8"
		case bits == 8:
			f = "int8"
		case bits == 16 && exponent == 8:
			f = "bf16"
		case bits == 16:
			f = "fp16"
		default:
			continue
		}
		best, format = bits, f
	}
	return format
}
