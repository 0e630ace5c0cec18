//go:build cuda

package cuda

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/kernels/cuda/cupti"
	"glmbatch/kernels/cuda/plan"
)

func TestAttribute(t *testing.T) {
	list := []plan.Launch{{Calls: []int{0}, Entry: "embed"}, {Calls: []int{1}, Entry: "moe_group"},
		{Calls: []int{1}, Entry: "moe_up"}, {Calls: []int{3}, Entry: "sample"}}
	seen := []cupti.Kernel{
		{Name: "host_copy", Start: 1, End: 2},
		{Name: "sample", Start: 90, End: 130, Node: 14}, {Name: "moe_up", Start: 45, End: 100, Node: 13},
		{Name: "embed", Start: 10, End: 30, Node: 11}, {Name: "moe_group", Start: 20, End: 50, Node: 12},
		{Name: "clock_read", Start: 200, End: 201},
	}
	chain := [][]int{{0}, {1}, {2}, {3}}
	got, err := attribute(list, seen, chain)
	if err != nil {
		t.Fatal(err)
	}
	want := []ProfiledCall{
		{Kernels: 1, Start: 10, Ready: 10, After: -1, End: 30},
		{Kernels: 2, Start: 20, Launch: 1, Ready: 30, After: 0, End: 100},
		{Launch: 2, Ready: 100, After: 1, End: 100},
		{Kernels: 1, Start: 90, Launch: 3, Ready: 100, After: 1, End: 130},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	shared := []plan.Launch{{Calls: []int{0}, Entry: "embed"}, {Calls: []int{2}, Entry: "moe_group"},
		{Calls: []int{1, 2}, Entry: "moe_up"}, {Calls: []int{3}, Entry: "sample"}}
	got, err = attribute(shared, seen, [][]int{{0}, {1, 2}, {3}})
	if err != nil {
		t.Fatal(err)
	}
	want = []ProfiledCall{
		{Kernels: 1, Start: 10, Ready: 10, After: -1, End: 30},
		{Kernels: 1, Start: 45, Launch: 1, Ready: 30, After: 0, End: 100},
		{Kernels: 2, Start: 20, Launch: 1, Ready: 30, After: 0, End: 100},
		{Kernels: 1, Start: 90, Launch: 2, Ready: 100, After: 1, End: 130},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := attribute(list[:3], seen, chain); err == nil {
		t.Error("a kernel that nobody launched passes")
	}
	seen[1].Name = "moe_down"
	if _, err := attribute(list, seen, chain); err == nil {
		t.Error("a kernel of another name passes")
	}
	seen[1].Name, seen[1].End = "sample", 0
	if _, err := attribute(list, seen, chain); err == nil {
		t.Error("a kernel without a time passes")
	}
}
