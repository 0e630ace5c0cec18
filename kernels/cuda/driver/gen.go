//go:build ignore

// Writes the trampolines: every function of symbols.txt jumps through a slot,
// which says "not initialised" until the driver's library has been found.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
)

func main() {
	f, err := os.Open("symbols.txt")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	var names []string
	for s := bufio.NewScanner(f); s.Scan(); {
		names = append(names, s.Text())
	}
	asm, err := os.Create("trampoline_amd64.S")
	if err != nil {
		log.Fatal(err)
	}
	defer asm.Close()
	fmt.Fprintf(asm, "// Written by gen.go from symbols.txt. DO NOT EDIT.\n//go:build cuda\n\n\t.text\n")
	for i, n := range names {
		fmt.Fprintf(asm,
			"\t.globl %s\n\t.hidden %[1]s\n\t.type %[1]s, @function\n%[1]s:\n\tjmp *glmbatch_slots+%d(%%rip)\n",
			n, 8*i)
	}
	fmt.Fprintf(asm, "\t.section .note.GNU-stack,\"\",@progbits\n")
	tab, err := os.Create("symbols.h")
	if err != nil {
		log.Fatal(err)
	}
	defer tab.Close()
	fmt.Fprintf(tab, "// Written by gen.go from symbols.txt. DO NOT EDIT.\n#define GLMBATCH_SYMBOLS %d\n#define "+
		"GLMBATCH_NAMES", len(names))
	for _, n := range names {
		fmt.Fprintf(tab, " \\\n\t%q,", n)
	}
	fmt.Fprintln(tab)
}
