//go:build !unix

package pipeline

const noFollow = 0

func noLocks(error) bool { return false }

// alive cannot tell here: what is silent is found by its time.
func alive(int) bool { return true }
