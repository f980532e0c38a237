// Floating point as IEEE 754 has it, and exact numbers of any size.
package main

import (
	"fmt"
	"math"
	"math/big"
	"math/cmplx"
	"strconv"
)

func main() {
	tenth, fifth := 0.1, 0.2
	fmt.Println(tenth+fifth, 0.1+0.2, 1e20, 1e21, math.SmallestNonzeroFloat64, math.MaxFloat64)
	fmt.Printf("%.0f %.0f %.2f %8.3f|%-8.2e|%g %+d %x\n", 2.5, 3.5, 2.675, math.Pi, 12345.678, 1e-7, 7, 255)
	nan, infinity := math.NaN(), math.Inf(1)
	fmt.Println(nan == nan, nan < 1, infinity-infinity, -1/infinity, math.Max(1, nan), math.Signbit(math.Copysign(0, -1)))
	fmt.Println(math.Round(-2.5), math.RoundToEven(-2.5), math.Trunc(-1.9), int(-tenth*19), math.Mod(-7, 3), -7%3)
	sum, single := 0.0, float32(0)
	for n := 1; n <= 1000000; n++ {
		sum += 1 / float64(n)
		single += 1 / float32(n)
	}
	fmt.Println(sum, single)
	fmt.Println(strconv.FormatFloat(1.0/3, 'x', -1, 64), strconv.FormatFloat(0.1, 'g', 20, 64), float32(0.1), float64(float32(0.1)))
	_, err := strconv.ParseFloat("1e999", 64)
	fmt.Println(err, math.Float64bits(1.5))
	factorial := new(big.Int).MulRange(1, 30)
	third := new(big.Rat).Add(big.NewRat(1, 3), big.NewRat(1, 6))
	fmt.Println(factorial, third, cmplx.Sqrt(-1), new(big.Int).Exp(big.NewInt(2), big.NewInt(100), big.NewInt(1000007)))
	var small int8 = 127
	small++
	var unsigned uint32
	unsigned--
	fmt.Println(small, unsigned, math.MaxInt64, 7/2, -7/2, 7>>1)
	defer func() { fmt.Println(recover()) }()
	zero := 0
	fmt.Println(1 / zero)
}
