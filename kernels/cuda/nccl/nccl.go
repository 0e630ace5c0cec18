//go:build cuda

package nccl

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

typedef struct { char bytes[128]; } id;
typedef struct {
	int (*version)(int *);
	int (*unique)(id *);
	int (*join)(void **, int, id, int);
	int (*leave)(void *);
	int (*begin)(void);
	int (*end)(void);
	int (*send)(const void *, size_t, int, int, void *, void *);
	int (*recv)(void *, size_t, int, int, void *, void *);
	int (*gather)(const void *, void *, size_t, int, void *, void *);
	int (*reduce)(const void *, void *, size_t, int, int, void *, void *);
	const char *(*text)(int);
} functions;

// find returns 0, or what is missing.
static const char *find(const char *path, functions *f) {
	// The inside of a switch is of no use to copies between ranks, and where
	// GPUs are shared it is not theirs.
	setenv("NCCL_NVLS_ENABLE", "0", 0);
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) return dlerror();
#define FIND(x, n) if (!(*(void **)&f->x = dlsym(lib, n))) return "it lacks " n
	FIND(version, "ncclGetVersion");
	FIND(unique, "ncclGetUniqueId");
	FIND(join, "ncclCommInitRank");
	FIND(leave, "ncclCommAbort");
	FIND(begin, "ncclGroupStart");
	FIND(end, "ncclGroupEnd");
	FIND(send, "ncclSend");
	FIND(recv, "ncclRecv");
	FIND(gather, "ncclAllGather");
	FIND(reduce, "ncclAllReduce");
	FIND(text, "ncclGetErrorString");
	return 0;
}

enum { float32 = 7, sum = 0 };
static int version(functions *f, int *v) { return f->version(v); }
static int unique(functions *f, id *i) { return f->unique(i); }
static int join(functions *f, void **c, int n, id *i, int rank) { return f->join(c, n, *i, rank); }
static int leave(functions *f, void *c) { return f->leave(c); }
static int begin(functions *f) { return f->begin(); }
static int end(functions *f) { return f->end(); }
static int xsend(functions *f, size_t p, size_t n, int peer, void *c, void *s) {
	return f->send((void *)p, n, float32, peer, c, s);
}
static int xrecv(functions *f, size_t p, size_t n, int peer, void *c, void *s) {
	return f->recv((void *)p, n, float32, peer, c, s);
}
static int gather(functions *f, size_t from, size_t to, size_t n, void *c,
	void *s) {
	return f->gather((void *)from, (void *)to, n, float32, c, s);
}
static int reduce(functions *f, size_t from, size_t to, size_t n, void *c,
	void *s) {
	return f->reduce((void *)from, (void *)to, n, float32, sum, c, s);
}
static const char *text(functions *f, int e) { return f->text(e); }
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// Name is the library's file as the loader finds it.
const Name = "libnccl.so.2"

// Library is a loaded library. It stays loaded.
type Library struct {
	f       C.functions
	Version string
}

// Open loads the library at path; "": Name, where the loader looks.
func Open(path string) (*Library, error) {
	if path == "" {
		path = Name
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var l Library
	if why := C.find(name, &l.f); why != nil {
		return nil, fmt.Errorf("load NCCL: %s", C.GoString(why))
	}
	var v C.int
	if err := l.result(C.version(&l.f, &v)); err != nil {
		return nil, fmt.Errorf("ask NCCL's version: %w", err)
	}
	l.Version = fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
	return &l, nil
}

func (l *Library) result(e C.int) error {
	if e == 0 {
		return nil
	}
	return errors.New("NCCL: " + C.GoString(C.text(&l.f, e)))
}

// Comm is one rank's place. Addresses are the rank's GPU's; counts are float32 values.
type Comm struct {
	l *Library
	c unsafe.Pointer
}

// Join makes a group of n ranks. use makes a rank's context the thread's current
// one, which it is called for in turn.
func (l *Library) Join(n int, use func(rank int) error) ([]*Comm, error) {
	var id C.id
	if err := l.result(C.unique(&l.f, &id)); err != nil {
		return nil, err
	}
	comms := make([]*Comm, n)
	err := l.Group(func() error {
		for r := range comms {
			if err := use(r); err != nil {
				return err
			}
			comms[r] = &Comm{l: l}
			if err := l.result(C.join(&l.f, &comms[r].c, C.int(n), &id, C.int(r))); err != nil {
				return err
			}
		}
		return nil
	})
	return comms, err
}

// Group makes the calls of f start together.
func (l *Library) Group(f func() error) error {
	if err := l.result(C.begin(&l.f)); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, l.result(C.end(&l.f)))
}

// Library returns what the Comm is of.
func (c *Comm) Library() *Library { return c.l }

func stream(s cu.Stream) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&s)) }

// Send and Recv move n values to and from a rank; those of a group are matched.
func (c *Comm) Send(from uintptr, n int64, rank int, s cu.Stream) error {
	return c.l.result(C.xsend(&c.l.f, C.size_t(from), C.size_t(n), C.int(rank), c.c, stream(s)))
}

func (c *Comm) Recv(to uintptr, n int64, rank int, s cu.Stream) error {
	return c.l.result(C.xrecv(&c.l.f, C.size_t(to), C.size_t(n), C.int(rank), c.c, stream(s)))
}

// Gather puts n values of each rank side by side.
func (c *Comm) Gather(from, to uintptr, n int64, s cu.Stream) error {
	return c.l.result(C.gather(&c.l.f, C.size_t(from), C.size_t(to), C.size_t(n), c.c, stream(s)))
}

// Reduce sums n values of all ranks in an order of the library's own.
func (c *Comm) Reduce(from, to uintptr, n int64, s cu.Stream) error {
	return c.l.result(C.reduce(&c.l.f, C.size_t(from), C.size_t(to), C.size_t(n), c.c, stream(s)))
}

// Close leaves the group, without waiting for others.
func (c *Comm) Close() error { return c.l.result(C.leave(&c.l.f, c.c)) }
