package units_test

import (
	"fmt"

	"glmbatch/units"
)

func Example() {
	n, err := units.ParseBytes("2GiB")
	fmt.Println(units.Bytes(n), units.Digits(n), units.Count(753_864_139_008), err)
	// Output:
	// 2.15 GB 2,147,483,648 754 B <nil>
}
