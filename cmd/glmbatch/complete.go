package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"glmbatch/datasets"
	"glmbatch/kernels/roofline"
	"glmbatch/pipeline"
	"glmbatch/replay"
	"glmbatch/replay/attribute"
	"glmbatch/replay/report"
)

// flagValues are the values that flags take, by name; where a command's differ, by the
// command's name and the flag's. A value that ends in = goes on.
func flagValues() map[string][]string {
	var formats []string
	for _, f := range report.Formats {
		formats = append(formats, f.Name)
	}
	by := strings.FieldsFunc(attribute.Groupings(), func(r rune) bool { return r == ',' || r == ' ' })
	by = slices.DeleteFunc(by, func(s string) bool { return s == "or" || s == "and" })
	return map[string][]string{
		"device":          {"auto", "cpu", "cuda"},
		"layout":          layouts,
		"run layout":      append([]string{autoLayout}, layouts...),
		"kv-cache":        {"bf16", "fp8", "f32"},
		"act":             {"w4a16", "w4a4", "int8"},
		"dense-weights":   {"bf16", "fp8"},
		"activations":     {"f32", "bf16"},
		"collective":      {"one-shot", "two-shot", "nccl", "host"},
		"thinking":        {"auto", "on", "off"},
		"on-overlong":     {pipeline.OverlongError, "truncate", "truncate-middle", "truncate-tail"},
		"run timeline":    {"auto", "off", "all", "every="},
		"timeline-format": {datasets.Parquet, datasets.Arrow},
		"run capture": {"first=", "slowest=", "every=", "step=", "decode:first=", "decode:slowest=",
			"prefill:first=", "mixed:first="},
		"capture-kv":    {replay.KVExact, replay.KVSeeded},
		"capture-calls": {replay.DetailNone, replay.DetailHash, replay.DetailData},
		"log-format":    {logText, logJSON},
		"stdout":        stdoutFormats,
		"tp":            {"1", "2", "4", "8"},
		"kind":          attribute.Kinds,
		"by":            by,
		"machine":       append([]string{"this", "none"}, roofline.Names()...),
		"verify":        {replay.VerifyOutputs, replay.VerifyCalls},
		"skip":          {"alone", "marginal"},
		"allow":         {"model", "device", "version"},
		"what-if":       {"kv=cast-pool", "kv=cast-active", "kv=in-place", "kv-cache=", "tp=", "drop=", "scale="},
		"format":        {"text", "json"},
		"report format": formats,
		"replay format": formats,
		"diff format":   report.DiffFormats,
		"weights":       {"nvfp4", "bf16"},
	}
}

// complete gives a shell the values of all flags below a command: those that are known,
// files or folders where they are wanted, and nothing elsewhere.
func complete(c *cobra.Command) {
	values := flagValues()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			return
		}
		_ = c.RegisterFlagCompletionFunc(f.Name, completer(values, c.Name(), f)) // each flag once
	})
	for _, sub := range c.Commands() {
		complete(sub)
	}
}

func completer(values map[string][]string, command string, f *pflag.Flag) cobra.CompletionFunc {
	list, ok := values[command+" "+f.Name]
	if !ok {
		list, ok = values[f.Name]
	}
	of, _ := pflag.UnquoteUsage(f)
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		kind := strings.ToLower(of)
		if kind == "string" { // the help names no value
			kind = f.Usage
		}
		switch {
		case ok && slices.ContainsFunc(list, func(s string) bool { return strings.HasSuffix(s, "=") }):
			return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case ok:
			return list, cobra.ShellCompDirectiveNoFileComp
		case strings.Contains(kind, "folder") || strings.Contains(kind, "dir"):
			return nil, cobra.ShellCompDirectiveFilterDirs
		case strings.Contains(kind, "file") || f.Name == "config" || f.Name == "model" || f.Name == "nccl":
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
