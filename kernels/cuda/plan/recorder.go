package plan

import "glmbatch/kernels"

// Recorder is a device that runs nothing: it keeps what a model allocates, so that its
// steps can be planned on any machine. Its addresses are those of no memory.
type Recorder struct {
	Units4  Units4 // that weights are packed for
	buffers []Buffer
}

// Alloc, Load and the other methods are those of [kernels.Device].
func (r *Recorder) Alloc(bytes int64, _ kernels.Sharing) (kernels.Buffer, error) {
	return r.add(bytes, nil), nil
}

// Load reads nothing.
func (r *Recorder) Load(ws kernels.Weights, _ kernels.Sharing) (kernels.Buffer, error) {
	w := &Weight{Format: ws.Format, Use: ws.Use, Count: ws.Count, Rows: ws.Rows, Cols: ws.Cols, Global: 1}
	if ws.Format == kernels.FP4 {
		w.Global, w.GlobalUp, w.Input = 2, 3, 0.5
		if ws.Use == kernels.Multiply4 {
			w.Units4 = r.Units4
		}
	}
	bytes, err := w.Layout()
	return r.add(bytes, w), err
}

func (r *Recorder) add(bytes int64, w *Weight) kernels.Buffer {
	b := Buffer{Ptr: uintptr(len(r.buffers)+1) << 40, Bytes: bytes, Weight: w} // far from all others
	if w != nil {
		w.Place(b.Ptr)
	}
	r.buffers = append(r.buffers, b)
	return kernels.Buffer{Index: uint32(len(r.buffers)), Len: bytes}
}

func (r *Recorder) Upload(kernels.Buffer, []byte) error                       { return nil }
func (r *Recorder) Download([]byte, kernels.Buffer) error                     { return nil }
func (r *Recorder) Start([]kernels.Call, []kernels.Span, kernels.Fetch) error { return nil }
func (r *Recorder) Wait() error                                               { return nil }
func (r *Recorder) Info() kernels.Info {
	return kernels.Info{Kind: "plan", Name: "no device"}
}
func (r *Recorder) Close() error { return nil }

// Memory is where a rank would have what was allocated. Scratch memory is not there.
func (r *Recorder) Memory() *Memory {
	m := &Memory{Buffers: r.buffers, Constants: map[Constant]uintptr{}, Stamps: 7 << 57,
		Group: Group{Arrived: 8 << 57, Epoch: 9 << 57, Failed: 10 << 57, Stop: 11 << 57, Limit: 1e9}}
	for i := range m.Group.Inbox {
		m.Group.Inbox[i] = uintptr(16+i) << 57
	}
	return m
}
