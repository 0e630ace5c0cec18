package ranks_test

import (
	"fmt"
	"log"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/ranks"
)

// A group makes the same allocations on all ranks: a buffer is one name for all.
func Example() {
	devices, err := cpu.Open(2, cpu.Options{Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	g, err := ranks.New(devices, ranks.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	b, err := g.Alloc(4, kernels.Sharded)
	if err != nil {
		log.Fatal(err)
	}
	if err := g.UploadTo(1, b, []byte{1, 2, 3, 4}); err != nil {
		log.Fatal(err)
	}
	for rank := range g.Ranks() {
		got := make([]byte, 4)
		if err := g.Download(rank, got, b); err != nil {
			log.Fatal(err)
		}
		fmt.Println("rank", rank, got)
	}
	// Output:
	// rank 0 [0 0 0 0]
	// rank 1 [1 2 3 4]
}
