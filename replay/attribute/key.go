package attribute

import (
	"fmt"
	"slices"
	"strings"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// By says what a row of a report stands for.
type By string

// What costs can be grouped by.
const (
	ByClass  By = "class"
	ByKernel By = "kernel"
	ByLayer  By = "layer"
	ByRank   By = "rank"
	ByCall   By = "call"
	// ByLaunch tells kernels of one name apart by their grids.
	ByLaunch By = "launch"
	// Where kernels were launched from, in imports of torch traces.
	ByOperator By = "operator"
	ByModule   By = "module"
	ByFrame    By = "frame"
)

var groupings = []By{ByClass, ByKernel, ByLayer, ByRank, ByCall, ByLaunch, ByOperator, ByModule, ByFrame}

// Groupings lists what can be grouped by, in words.
func Groupings() string {
	var s []string
	for _, b := range groupings {
		s = append(s, string(b))
	}
	return strings.Join(s, ", ")
}

// ofKernels reports whether a row stands for a kernel, so that the lengths of its spans
// can be compared.
func (b By) ofKernels() bool { return b == ByKernel || b == ByLaunch }

// Known reports whether costs can be grouped by b.
func (b By) Known() bool { return slices.Contains(groupings, b) }

// Key is what a row stands for. Fields that the grouping does not use are -1.
type Key struct {
	Class, Kernel     int32 // numbers of names
	Layer, Rank, Call int32
	GridX, Block      int32
	Site              int32
}

var noKey = Key{-1, -1, -1, -1, -1, -1, -1, -1}

// Site is what the reader of a timeline must be asked for.
func (b By) Site() timeline.SiteKind {
	switch b {
	case ByOperator:
		return timeline.OperatorSite
	case ByModule:
		return timeline.ModuleSite
	case ByFrame:
		return timeline.FrameSite
	}
	return timeline.NoSite
}

// keyOf returns the key of an event.
func (b By) keyOf(e *timeline.Event) Key {
	k := noKey
	switch b {
	case ByKernel:
		k.Class, k.Kernel = e.Class, e.Kernel
	case ByLayer:
		k.Layer = e.Layer
	case ByRank:
		k.Rank = e.Rank
	case ByCall:
		k.Class, k.Kernel, k.Layer, k.Call = e.Class, e.Kernel, e.Layer, e.Call
	case ByLaunch:
		k.Class, k.Kernel, k.GridX, k.Block = e.Class, e.Kernel, e.GridX, e.BlockX
	case ByOperator, ByModule, ByFrame:
		k.Site = e.Site
	default:
		k.Class = e.Class
	}
	return k
}

// label is what a report calls a key.
func (b By) label(k Key, names *datasets.Names) string {
	switch b {
	case ByKernel:
		return names.Name(k.Kernel)
	case ByLayer:
		if k.Layer < 0 {
			return "no layer"
		}
		return fmt.Sprintf("layer %d", k.Layer)
	case ByRank:
		return fmt.Sprintf("rank %d", k.Rank)
	case ByCall:
		if k.Layer < 0 {
			return fmt.Sprintf("%d %s", k.Call, names.Name(k.Kernel))
		}
		return fmt.Sprintf("%d %s, layer %d", k.Call, names.Name(k.Kernel), k.Layer)
	case ByLaunch:
		if k.GridX > 0 {
			return fmt.Sprintf("%s <%d x %d>", names.Name(k.Kernel), k.GridX, k.Block)
		}
		return names.Name(k.Kernel)
	case ByOperator, ByModule, ByFrame:
		if name := names.Name(k.Site); name != "" {
			return name
		}
		return "no " + string(b)
	}
	return names.Name(k.Class)
}

// keyring numbers keys in order of appearance.
type keyring struct {
	by    By
	keys  []Key
	index map[Key]int32
	class []int32 // by class: number of a name -> key + 1; 0: none yet
}

func (r *keyring) number(e *timeline.Event) int32 {
	if r.by == ByClass {
		if int(e.Class) >= len(r.class) {
			r.class = append(r.class, make([]int32, int(e.Class)+1-len(r.class))...)
		}
		if n := r.class[e.Class]; n > 0 {
			return n - 1
		}
	}
	k := r.by.keyOf(e)
	n, ok := r.index[k]
	if !ok {
		n = int32(len(r.keys))
		r.keys = append(r.keys, k)
		if r.index == nil {
			r.index = map[Key]int32{}
		}
		r.index[k] = n
	}
	if r.by == ByClass {
		r.class[e.Class] = n + 1
	}
	return n
}
