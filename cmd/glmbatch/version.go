package main

import (
	"strings"
)

// versionText is the line of --version: the module's version, the commit it was
// built from, and the compiler.
func versionText() string {
	v := versions()
	parts := []string{v["glmbatch"]}
	if parts[0] == "" {
		parts[0] = "(devel)"
	}
	if rev := v["vcs.revision"]; rev != "" {
		if v["vcs.modified"] == "true" {
			rev += " with changes"
		}
		parts = append(parts, rev)
	}
	return strings.Join(append(parts, v["go"]), ", ")
}
