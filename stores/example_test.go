package stores_test

import (
	"fmt"

	"glmbatch/stores"
)

// Names of objects are put together as URLs are.
func ExampleJoin() {
	fmt.Println(stores.IsURL("s3://bucket/prompts"), stores.IsURL("prompts.parquet"))
	fmt.Println(stores.Join("s3://bucket/prompts", "part-00000.parquet"))
	// Output:
	// true false
	// s3://bucket/prompts/part-00000.parquet
}
