package checkpoint

import "testing"

// Reading ahead takes any names, and leaves what is read as it is.
func TestReadAhead(t *testing.T) {
	files := small(t)
	c, err := Open(writeFiles(t, files))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	memory, err := FromFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	names := append(c.Names(), "no such tensor", "")
	c.ReadAhead(names)
	c.ReadAhead(nil)
	memory.ReadAhead(names)
	for _, n := range c.Names() {
		a, err := c.Tensor(n)
		if err != nil {
			t.Fatal(err)
		}
		b, err := memory.Tensor(n)
		if err != nil {
			t.Fatal(err)
		}
		if string(contents(t, a)) != string(contents(t, b)) {
			t.Errorf("%s differs", n)
		}
	}
}
