package nvfp4

// Block is the number of values that share a scale.
const Block = 16

// E2M1 has the value of each 4-bit code: a sign, two bits of exponent, one of
// mantissa.
var E2M1 = [16]float32{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6}

// MaxE2M1 is the largest magnitude of a code.
const MaxE2M1 = 6

// EncodeE2M1 returns the code nearest to x; ties go to the even code and large
// values to ±6. NaN becomes 6, as the hardware's conversion does; -0 becomes 0,
// as ModelOpt's does.
func EncodeE2M1(x float32) byte {
	var sign byte
	if x < 0 {
		sign, x = 8, -x
	}
	// Half of the bounds belong to the code below: an even code takes its ties.
	switch {
	case x <= .25:
		return sign
	case x < .75:
		return sign | 1
	case x <= 1.25:
		return sign | 2
	case x < 1.75:
		return sign | 3
	case x <= 2.5:
		return sign | 4
	case x < 3.5:
		return sign | 5
	case x <= 5:
		return sign | 6
	}
	return sign | 7
}
