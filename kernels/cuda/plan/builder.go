package plan

import (
	"fmt"
	"reflect"

	"glmbatch/kernels"
)

// Each plans a list call by call, as it is launched the first time.
func Each(calls []kernels.Call, t *Target, m *Memory) (*Plan, error) {
	b := newBuilder(t, m)
	all := make([]int, len(calls))
	b.Chain = make([][]int, len(calls))
	for i := range calls {
		all[i] = i
		b.Chain[i] = all[i : i+1 : i+1]
		if err := b.together(calls, b.Chain[i]); err != nil {
			return nil, err
		}
	}
	return &b.Plan, nil
}

// Together plans a list whose calls share launches, as it is launched when it comes again.
// Those that share one are on lanes beside each other.
func Together(calls []kernels.Call, t *Target, m *Memory) (*Plan, error) {
	b := newBuilder(t, m)
	b.Lanes = make([]int8, len(calls))
	b.Chain = chain(calls, t.Architecture)
	for _, which := range b.Chain {
		for lane, i := range which {
			b.Lanes[i] = int8(lane)
		}
		if err := b.together(calls, which); err != nil {
			return nil, err
		}
	}
	return &b.Plan, nil
}

// builder is a plan in the making. What it knows beside the launches is what they leave
// for the next ones.
type builder struct {
	Plan
	t *Target
	m *Memory

	of   []int                // the calls that the next launch is for
	by   string               // the variant that makes it
	turn int                  // of the call that is being planned
	late bool                 // the next launch is Late
	pick func(*call) *Variant // choose, for variants that hand a call on: the tables name them

	// Of the launch that is being put together.
	segments       []segment
	clusters       []clusterGemmP
	clusterWeights productFormat
	persistent     persistent
	beside         bool     // q_absorb and index_topk are launched together
	absorb         *absorbP // q_absorb, if it is left to index_topk's launch
	behind         bool     // q_absorb's launch lets index_topk's start that has not to wait for it

	fresh   fresh          // what the list wrote last
	leads   leads          // the launch in front leaves all before it done
	panels  panels         // of rows
	split   split          // the panels in ScratchPanels
	grouped kernels.Buffer // the experts that ScratchLists has lists of
}

func newBuilder(t *Target, m *Memory) *builder {
	b := &builder{t: t, m: m}
	b.pick = b.choose
	return b
}

// together plans calls that may share a launch.
func (b *builder) together(calls []kernels.Call, which []int) error {
	b.of, b.segments, b.clusters, b.absorb, b.behind = which, b.segments[:0], b.clusters[:0], nil, false
	b.persistent.of = b.persistent.of[:0]
	b.fresh.launch()
	if f := b.fusionOf(calls, which); f != nil {
		return b.fused(f, calls, which)
	}
	b.beside = len(which) == 2 && absorbsBeside(&calls[which[0]], &calls[which[1]])
	for n, i := range which {
		if b.beside && b.absorb == nil { // launched one by one, so far
			b.of = which[n : n+1]
		} else if b.beside {
			b.of = which
		}
		if err := b.one(i, &calls[i]); err != nil {
			return err
		}
	}
	return b.flush()
}

// one plans a call, by the first variant that holds.
func (b *builder) one(i int, k *kernels.Call) error {
	c, err := b.resolve(i, k)
	if c == nil || err != nil {
		return err
	}
	v := b.choose(c)
	if v == nil {
		return fmt.Errorf("%w: the CUDA device has no kernel %s", kernels.ErrKernel, k.Kernel)
	}
	b.by = v.Name
	if err := v.Build(b, c); err != nil {
		return fmt.Errorf("call %d, %s of layer %d: %w", i, k.Kernel, k.Layer, err)
	}
	return nil
}

// do adds a launch, behind what the call has asked for before.
func (b *builder) do(entry string, grid [3]uint32, threads, shared uint32, params any) error {
	if err := b.flush(); err != nil {
		return err
	}
	return b.add(Launch{Entry: entry, Grid: grid, Threads: threads, Shared: shared, Params: params})
}

// add adds a launch.
func (b *builder) add(l Launch) error {
	if l.empty() {
		return nil
	}
	if err := l.check(); err != nil {
		return err
	}
	// A copy: calls that have several launches go on changing theirs, and C may be handed no
	// memory that has Go's pointers in it, as a call has beside them.
	own := reflect.New(reflect.TypeOf(l.Params).Elem())
	own.Elem().Set(reflect.ValueOf(l.Params).Elem())
	l.Params, l.Calls, l.By = own.Interface(), b.of, b.by
	l.Late, b.late = b.late, false
	b.Launches = append(b.Launches, l)
	return nil
}

// leads is the launch in front, if it lets the next one start only after its own wait, as
// moe_route and moe_up do: all before it is done then.
type leads struct {
	launches int
	experts  kernels.Buffer // what it chose or used
}

// lead notes that such a launch was added.
func (b *builder) lead(experts kernels.Buffer) { b.leads = leads{len(b.Launches), experts} }

// follows is 1 if such a launch with the same experts is in front of the next one, which
// then may read what was there before it at once.
func (b *builder) follows(experts kernels.Buffer) int32 {
	if len(b.Launches) > 0 && b.leads == (leads{len(b.Launches), experts}) {
		return 1
	}
	return 0
}
