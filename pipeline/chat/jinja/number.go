package jinja

import (
	"math"
	"math/big"
)

// normalInt is i as an int where it has 64 bits.
func normalInt(i *big.Int) any {
	if i.IsInt64() {
		return int(i.Int64())
	}
	if i.BitLen() > maxIntBits {
		fail("an integer of more than %d bits", maxIntBits)
	}
	return i
}

// bigOf returns an integer or a bool as a big one.
func bigOf(v any) (*big.Int, bool) {
	if b, ok := v.(*big.Int); ok {
		return b, true
	}
	i, ok := intOf(v)
	return big.NewInt(int64(i)), ok
}

// floatOf returns any number as a float.
func floatOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			fail("OverflowError: int too large to convert to float")
		}
		return f, true
	}
	i, ok := intOf(v)
	return float64(i), ok
}

func isFloat(v any) bool { _, ok := v.(float64); return ok }

// arithmetic is a op b for numbers; not ok if one is none.
func arithmetic(op string, a, b any) (any, bool) {
	if i, ok := intOf(a); ok {
		if k, ok := intOf(b); ok {
			if v, ok := smallInts(op, i, k); ok {
				return v, true
			}
		}
	}
	if !isFloat(a) && !isFloat(b) {
		i, ok := bigOf(a)
		k, ok2 := bigOf(b)
		if !ok || !ok2 {
			return nil, false
		}
		return bigInts(op, i, k), true
	}
	x, ok := floatOf(a)
	y, ok2 := floatOf(b)
	if !ok || !ok2 {
		return nil, false
	}
	return floats(op, x, y), true
}

// smallInts is arithmetic without overflow; not ok if there is some, or op is
// another's business.
func smallInts(op string, a, b int) (any, bool) {
	switch op {
	case "+":
		c := a + b
		return c, (c > a) == (b > 0)
	case "-":
		c := a - b
		return c, (c < a) == (b > 0)
	case "*":
		const half = 1 << 31
		return a * b, -half < a && a < half && -half < b && b < half
	case "//", "%":
		if b == 0 || b == -1 {
			return nil, false
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q, m = q-1, m+b
		}
		if op == "%" {
			return m, true
		}
		return q, true
	}
	return nil, false
}

func bigInts(op string, a, b *big.Int) any {
	z := new(big.Int)
	if (op == "/" || op == "//" || op == "%") && b.Sign() == 0 {
		if op == "/" {
			fail("ZeroDivisionError: division by zero")
		}
		fail("ZeroDivisionError: integer division or modulo by zero")
	}
	switch op {
	case "+":
		return normalInt(z.Add(a, b))
	case "-":
		return normalInt(z.Sub(a, b))
	case "*":
		return normalInt(z.Mul(a, b))
	case "/":
		f, _ := new(big.Rat).SetFrac(a, b).Float64()
		if math.IsInf(f, 0) {
			fail("OverflowError: integer division result too large for a float")
		}
		return f
	case "//", "%":
		m := new(big.Int)
		z.QuoRem(a, b, m)
		if m.Sign() != 0 && (m.Sign() < 0) != (b.Sign() < 0) {
			z.Sub(z, big.NewInt(1))
			m.Add(m, b)
		}
		if op == "%" {
			return normalInt(m)
		}
		return normalInt(z)
	}
	if b.Sign() < 0 {
		x, _ := floatOf(normalInt(a))
		y, _ := floatOf(normalInt(b))
		return floats("**", x, y)
	}
	if a.BitLen() > 1 && (!b.IsInt64() || b.Int64()*int64(a.BitLen()-1) > maxIntBits || b.Int64() > maxIntBits) {
		fail("an integer of more than %d bits", maxIntBits)
	}
	if a.BitLen() <= 1 { // -1, 0 or 1
		switch {
		case b.Sign() == 0:
			return 1
		case a.Sign() < 0 && b.Bit(0) == 0:
			return 1
		}
		return normalInt(a)
	}
	return normalInt(z.Exp(a, b, nil))
}

func floats(op string, x, y float64) any {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		switch {
		case x == 0 && y < 0:
			fail("ZeroDivisionError: 0.0 cannot be raised to a negative power")
		case x < 0 && y != math.Trunc(y) && !math.IsInf(y, 0):
			fail("complex numbers are not supported")
		}
		f := math.Pow(x, y)
		if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			fail("OverflowError: (34, 'Numerical result out of range')")
		}
		return f
	}
	if y == 0 {
		fail("ZeroDivisionError: float division by zero")
	}
	if op == "/" {
		return x / y
	}
	m := math.Mod(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	} else if m == 0 {
		m = math.Copysign(0, y)
	}
	if op == "%" {
		return m
	}
	q := (x - m) / y
	f := math.Floor(q)
	if q-f > 0.5 {
		f++
	}
	return f
}

// round is Python's: half to even, by the exact value.
func (r *run) round(v any, digits int) any {
	if i, ok := bigOf(v); ok {
		if digits >= 0 {
			return normalInt(i)
		}
		if -digits > maxIntBits/4 {
			return 0
		}
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
		q, m := new(big.Int).DivMod(i, unit, new(big.Int)) // m is not negative
		twice := new(big.Int).Lsh(m, 1)
		if c := twice.Cmp(unit); c > 0 || c == 0 && q.Bit(0) == 1 {
			q.Add(q, big.NewInt(1))
		}
		return normalInt(q.Mul(q, unit))
	}
	f, ok := v.(float64)
	if !ok {
		typeError("type %s doesn't define __round__ method", typeName(v))
	}
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f) || digits > 323:
		return f
	case digits < -308:
		return math.Copysign(0, f)
	case digits >= 0:
		return parseFixed(f, digits)
	}
	unit := math.Pow(10, float64(-digits))
	return math.RoundToEven(f/unit) * unit
}
