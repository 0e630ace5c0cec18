package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// emptyMeans are the flags for which an empty value says something.
var emptyMeans = []string{"system"}

// givenEmpty reports flags that were given without a value, as scripts do whose
// variable is not set. To take the default instead would run another job than
// was meant.
func givenEmpty(f *pflag.FlagSet) error {
	var errs []error
	f.Visit(func(x *pflag.Flag) {
		v := x.Value.String()
		if list, ok := x.Value.(pflag.SliceValue); ok {
			v = strings.Join(list.GetSlice(), "")
		}
		if v == "" && !slices.Contains(emptyMeans, x.Name) {
			errs = append(errs, fmt.Errorf("--%s is empty: give it a value, or leave it out", x.Name))
		}
	})
	return errors.Join(errs...)
}

// likelyFlag is what a flag that does not exist may have been meant to be.
func likelyFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	name := unknown.GetSpecifiedName()
	best, least := "", 1+max(1, (len(name)+1)/3) // letters that may differ
	c.Flags().VisitAll(func(x *pflag.Flag) {
		if x.Hidden {
			return
		}
		if d := editDistance(name, x.Name); d < least {
			best, least = x.Name, d
		}
	})
	if best == "" {
		return ""
	}
	return ": did you mean --" + best + "?"
}

// editDistance is how many letters are to be put in, taken out or changed.
func editDistance(a, b string) int {
	const longest = 64 // of a name; what is longer is none
	if len(a) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
