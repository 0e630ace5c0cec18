package journal_test

import (
	"fmt"
	"log"
	"os"

	"glmbatch/pipeline/journal"
)

// What was synced is there after a kill.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	j, _, err := journal.Open(dir, "a job", journal.Options{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := j.Append(7, []byte("an answer")); err != nil {
		log.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		log.Fatal(err)
	}
	if err := j.Close(); err != nil {
		log.Fatal(err)
	}
	err = journal.Look(dir, "a job", func(r journal.Record) error {
		fmt.Println(r.Key, string(r.Data))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 7 an answer
}
