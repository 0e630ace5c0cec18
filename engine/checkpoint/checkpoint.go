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
// of goroutines, but for Close. What they return may be views of the files:
// none is valid after Close, and none may be written to.
type Checkpoint struct {
	Name     string // the folder, for messages
	config   []byte
	files    []*file // by name
	tensors  map[string]*Tensor
	names    []string // of the tensors, sorted
	quant    quantization
	warnings []string
}

// source is where a checkpoint's files are. Both give fs.ErrNotExist.
type source struct {
	name  string
	small func(name string) ([]byte, error)
	open  func(name string) (*file, error)
}

// Open opens a model folder. It reads the headers of the weight files, none of
// their data.
func Open(dir string) (*Checkpoint, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("opening checkpoint: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("opening checkpoint: %s is a file; give the folder that has %s", dir, ConfigFile)
	}
	return open(source{
		name:  dir,
		small: func(name string) ([]byte, error) { return readSmall(filepath.Join(dir, name), maxHeader) },
		open:  func(name string) (*file, error) { return openFile(filepath.Join(dir, name), name) },
	})
}

// FromFiles opens a checkpoint whose files, by name, are in memory.
func FromFiles(files map[string][]byte) (*Checkpoint, error) {
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
			return &file{name: name, data: b}, err
		},
	})
}

// FromTensors makes a checkpoint of tensors in memory, which may be views of the
// same bytes. Each tensor's data must be as long as its type and shape say.
func FromTensors(name string, config []byte, tensors []Tensor) (*Checkpoint, error) {
	c := &Checkpoint{Name: name, config: config, tensors: make(map[string]*Tensor, len(tensors))}
	memory := &file{name: name}
	for i := range tensors {
		t := &tensors[i]
		if want := int64(t.Len()) * sizes[t.DType]; want != int64(len(t.Data)) {
			return nil, fmt.Errorf("%s: %s is %s %v, which takes %d bytes, and has %d", name, t.Name, t.DType, t.Shape, want, len(t.Data))
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

func open(src source) (_ *Checkpoint, err error) {
	c := &Checkpoint{Name: src.name, tensors: map[string]*Tensor{}}
	defer func() {
		if err != nil {
			c.Close()
			err = fmt.Errorf("opening checkpoint %s: %w", src.name, err)
		}
	}()
	if c.config, err = src.small(ConfigFile); err != nil {
		return nil, err
	}
	if len(c.config) > maxConfig {
		return nil, fmt.Errorf("%s has %d bytes, a config has at most %d", ConfigFile, len(c.config), maxConfig)
	}
	extra, err := src.small(QuantFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	index, err := readIndex(src)
	if err != nil {
		return nil, err
	}
	if err := c.openFiles(src, index); err != nil {
		return nil, err
	}
	if c.quant, err = parseQuantization(c.config, extra); err != nil {
		return nil, err
	}
	c.names = slices.Sorted(maps.Keys(c.tensors))
	c.warnings = append(c.warnings, c.quant.warnings...)
	c.warnings = append(c.warnings, c.contradictions()...)
	return c, nil
}

// openFiles opens the index's files and takes from each what the index says it has.
func (c *Checkpoint) openFiles(src source, index index) error {
	var missing faults
	for _, name := range index.files {
		f, err := src.open(name)
		if errors.Is(err, fs.ErrNotExist) {
			missing.add("%s", name)
			continue
		}
		if err != nil {
			return err
		}
		c.files = append(c.files, f)
		header, data, err := readHeader(f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f.header = header
		tensors, err := parseHeader(header, data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := c.take(f, tensors, index); err != nil {
			return err
		}
	}
	if missing.n > 0 {
		return fmt.Errorf("%d of %d weight files are missing, download them: %s: %w", missing.n, len(index.files), missing.String(), fs.ErrNotExist)
	}
	var lacking []string
	for name, file := range index.fileOf {
		if c.tensors[name] == nil {
			lacking = append(lacking, name+" ("+file+")")
		}
	}
	if len(lacking) > 0 {
		return fmt.Errorf("%s names %d tensors that its files lack, first %s", IndexFile, len(lacking), slices.Min(lacking))
	}
	return nil
}

func (c *Checkpoint) take(f *file, tensors []Tensor, index index) error {
	var strays faults
	for i := range tensors {
		t := &tensors[i]
		t.file = f
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
		c.warnings = append(c.warnings, fmt.Sprintf("%s has %d tensors that %s does not place there: %s", f.name, strays.n, IndexFile, strays.String()))
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
		n += int64(len(f.data))
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

// Tensor returns an entry as it is stored. The error is [ErrMissing], or that
// its file was truncated.
func (c *Checkpoint) Tensor(name string) (*Tensor, error) {
	t := c.tensors[name]
	if t == nil {
		return nil, fmt.Errorf("%s: %w %s", name, ErrMissing, c.Name)
	}
	if err := t.file.check(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
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
