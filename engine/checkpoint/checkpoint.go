package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The files of a checkpoint that this package reads.
const (
	ConfigFile  = "config.json"
	QuantFile   = "hf_quant_config.json"
	IndexFile   = "model.safetensors.index.json"
	WeightsFile = "model.safetensors"
)

const maxConfig = 16 << 20 // bytes of a configuration file

// ErrMissing: the checkpoint has no such weight.
var ErrMissing = errors.New("not in the checkpoint")

// Checkpoint is an open model folder. Its methods may be called from any number
// of goroutines, but for Close. What they return may be views of files in memory:
// none may be written to.
type Checkpoint struct {
	Name     string // the folder, for messages
	Dir      string // where the files are: Name, or a snapshot in it; "": in memory
	config   []byte
	files    []*file // by name
	tensors  map[string]*Tensor
	names    []string // of the tensors, sorted
	quant    quantization
	warnings []string
}

// source is where a checkpoint's files are. small and open give fs.ErrNotExist.
type source struct {
	name  string
	small func(name string) ([]byte, error)
	open  func(name string) (*file, error)
	list  func() []string
}

// Accept looks at config.json before anything else is read. Its error ends Open: that
// a folder is of another model is said first. needs says which tensors matter; nil:
// all do.
type Accept func(config []byte) (needs func(tensor string) bool, err error)

// Open opens a model folder, or a model's folder in Hugging Face's cache. It reads
// the headers of the weight files, none of their data. accept is one or none.
func Open(dir string, accept ...Accept) (*Checkpoint, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, notFolder(dir, err)
	}
	at, err := Snapshot(dir)
	if err != nil {
		return nil, err
	}
	return open(source{
		name:  dir,
		small: func(name string) ([]byte, error) { return readSmall(filepath.Join(at, name), maxHeader) },
		open:  func(name string) (*file, error) { return openFile(filepath.Join(at, name), name) },
		list:  func() []string { return list(at) },
	}, at, accept)
}

// FromFiles opens a checkpoint whose files, by name, are in memory.
func FromFiles(files map[string][]byte, accept ...Accept) (*Checkpoint, error) {
	find := func(name string) ([]byte, error) {
		if b, ok := files[name]; ok {
			return b, nil
		}
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return open(source{
		name:  "embedded checkpoint",
		small: find,
		open: func(name string) (*file, error) {
			b, err := find(name)
			return &file{name: name, memory: b, size: int64(len(b))}, err
		},
		list: func() []string { return slices.Sorted(maps.Keys(files)) },
	}, "", accept)
}

// FromTensors makes a checkpoint of tensors in memory, which may be views of the
// same bytes. Each tensor's data must be as long as its type and shape say.
func FromTensors(name string, config []byte, tensors []Tensor) (*Checkpoint, error) {
	c := &Checkpoint{Name: name, config: config, tensors: make(map[string]*Tensor, len(tensors))}
	memory := &file{name: name}
	for i := range tensors {
		t := &tensors[i]
		if want := int64(t.Len()) * sizes[t.DType]; want != int64(len(t.Data)) {
			return nil, fmt.Errorf("%s: %s is %s %v, which takes %d bytes, and has %d", name, t.Name, t.DType, t.Shape,
				want, len(t.Data))
		}
		if c.tensors[t.Name] != nil {
			return nil, fmt.Errorf("%s: %s is there twice", name, t.Name)
		}
		t.file = memory
		c.tensors[t.Name] = t
	}
	c.names = slices.Sorted(maps.Keys(c.tensors))
	return c, nil
}

func open(src source, dir string, accept []Accept) (_ *Checkpoint, err error) {
	c := &Checkpoint{Name: src.name, Dir: dir, tensors: map[string]*Tensor{}}
	defer func() {
		if err != nil {
			c.Close()
			err = fmt.Errorf("opening checkpoint %s: %w", src.name, err)
		}
	}()
	if err := c.readConfig(src); err != nil {
		return nil, err
	}
	needs := func(string) bool { return true }
	for _, a := range accept {
		n, err := a(c.config)
		if err != nil {
			return nil, err
		}
		if n != nil {
			needs = n
		}
	}
	extra, err := src.small(QuantFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if what := foreign(extra[:min(len(extra), sniffed)]); what != "" {
		return nil, fmt.Errorf("%s is %s", QuantFile, what)
	}
	if c.quant, err = parseQuantization(c.config, extra); err != nil {
		return nil, err
	}
	index, missing, err := readIndex(src)
	if err != nil {
		return nil, err
	}
	if err := c.openFiles(src, index, missing, needs); err != nil {
		return nil, err
	}
	c.names = slices.Sorted(maps.Keys(c.tensors))
	c.warnings = append(c.warnings, c.quant.warnings...)
	c.warnings = append(c.warnings, c.contradictions()...)
	return c, nil
}

func (c *Checkpoint) readConfig(src source) (err error) {
	c.config, err = src.small(ConfigFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", absent(src.list()), fs.ErrNotExist)
	case err != nil:
		return err
	case len(c.config) > maxConfig:
		return fmt.Errorf("%s has %d bytes, a config has at most %d", ConfigFile, len(c.config), maxConfig)
	}
	if what := foreign(c.config[:min(len(c.config), sniffed)]); what != "" {
		return fmt.Errorf("%s is %s", ConfigFile, what)
	}
	return nil
}

// openFiles opens the index's files and takes from each what the index says it has.
func (c *Checkpoint) openFiles(src source, index index, gone []string, needs func(string) bool) error {
	var missing faults
	for _, name := range gone {
		missing.add("%s", name)
	}
	for _, name := range index.files {
		f, err := src.open(name)
		if errors.Is(err, fs.ErrNotExist) {
			if index.wanted(name, needs) {
				missing.add("%s", name)
			} else {
				c.warnings = append(c.warnings, fmt.Sprintf("%s is missing; nothing that is needed is in it", name))
			}
			continue
		}
		if err != nil {
			return err
		}
		c.files = append(c.files, f)
		if missing.n > 0 { // only how many more are missing is still of interest
			continue
		}
		if err := f.readHeader(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		tensors, err := f.entries()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := c.take(f, tensors, index); err != nil {
			return err
		}
	}
	if missing.n > 0 {
		half := ""
		if n := unfinished(src.list()); n != "" {
			half = fmt.Sprintf(" (a download is unfinished: %q)", n)
		}
		return fmt.Errorf("%d of %d weight files are missing, download them: %s%s: %w", missing.n,
			len(index.files)+len(gone), missing.String(), half, fs.ErrNotExist)
	}
	var lacking []string
	for name, file := range index.fileOf {
		if c.tensors[name] == nil {
			lacking = append(lacking, name+" ("+file+")")
		}
	}
	if len(lacking) > 0 {
		c.warnings = append(c.warnings, fmt.Sprintf("%s names %d tensors that its files lack, first %s", IndexFile,
			len(lacking), slices.Min(lacking)))
	}
	return nil
}

func (c *Checkpoint) take(f *file, tensors []Tensor, index index) error {
	var strays faults
	for i := range tensors {
		t := &tensors[i]
		switch file, ok := index.fileOf[t.Name]; {
		case index.fileOf == nil:
		case !ok:
			strays.add("%s", t.Name)
		case file != f.name:
			strays.add("%s", t.Name)
			continue
		}
		if old := c.tensors[t.Name]; old != nil {
			return fmt.Errorf("%s is in %s and in %s", t.Name, old.file.name, f.name)
		}
		c.tensors[t.Name] = t
	}
	if strays.n > 0 {
		c.warnings = append(c.warnings, fmt.Sprintf("%s has %d tensors that %s does not place there: %s", f.name,
			strays.n, IndexFile, strays.String()))
	}
	return nil
}

// Close unmaps the files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.close())
	}
	c.files = nil
	return errors.Join(errs...)
}

// Config returns the bytes of config.json.
func (c *Checkpoint) Config() []byte { return c.config }

// Bytes returns the size of the weight files.
func (c *Checkpoint) Bytes() int64 {
	var n int64
	for _, f := range c.files {
		n += f.size
	}
	return n
}

// Files returns the names of the weight files.
func (c *Checkpoint) Files() []string {
	var names []string
	for _, f := range c.files {
		names = append(names, f.name)
	}
	return names
}

// Names returns the names of all tensors, sorted.
func (c *Checkpoint) Names() []string { return slices.Clone(c.names) }

// Has reports whether a tensor is stored under the name.
func (c *Checkpoint) Has(name string) bool { return c.tensors[name] != nil }

// Tensor returns an entry as it is stored. The error is [ErrMissing].
func (c *Checkpoint) Tensor(name string) (*Tensor, error) {
	t := c.tensors[name]
	if t == nil {
		return nil, fmt.Errorf("%s: %w %s", name, ErrMissing, c.Name)
	}
	return t, nil
}

// Warnings returns what is odd but does not keep the weights from being read:
// each is one line that names tensors.
func (c *Checkpoint) Warnings() []string { return c.warnings }

// faults keeps the first few of many texts for one line.
type faults struct {
	n     int
	first []string
}

func (f *faults) add(format string, args ...any) {
	if f.n++; f.n <= 3 {
		f.first = append(f.first, fmt.Sprintf(format, args...))
	}
}

func (f *faults) String() string {
	s := strings.Join(f.first, ", ")
	if f.n > len(f.first) {
		s += fmt.Sprintf(" and %d more", f.n-len(f.first))
	}
	return s
}
