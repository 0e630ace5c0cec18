//go:build cuda

#define _GNU_SOURCE
#include "shim.h"
#include "record.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
	int (*version)(uint32_t *);
	int (*result)(int, const char **);
	int (*enable)(int);
	int (*disable)(int);
	int (*flush)(uint32_t);
	int (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
	int (*next)(uint8_t *, size_t, void **);
	int (*dropped)(void *, uint32_t, size_t *);
	int (*clock)(uint64_t (*)(void));
} x;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct glmbatch_kernel *kernels;
static size_t have, room, lost;

uint64_t glmbatch_cupti_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const char *why(const char *what, int r) {
	static __thread char text[256];
	const char *s = 0;
	if (!r) return 0;
	if (x.result) x.result(r, &s);
	snprintf(text, sizeof text, "%s: %s (%d)", what, s ? s : "unknown error", r);
	return text;
}

enum { buffer_bytes = 4 << 20 };

static void request(uint8_t **buffer, size_t *size, size_t *records) {
	*buffer = aligned_alloc(8, buffer_bytes);
	*size = *buffer ? buffer_bytes : 0;
	*records = 0;
}

static void keep(const struct record *r) {
	if (have == room) {
		size_t n = room ? 2 * room : 4096;
		struct glmbatch_kernel *more = realloc(kernels, n * sizeof *more);
		if (!more) {
			lost++;
			return;
		}
		kernels = more, room = n;
	}
	struct glmbatch_kernel *k = &kernels[have++];
	memset(k, 0, sizeof *k);
	k->start = r->start, k->end = r->end, k->node = r->graphNodeId, k->device = r->deviceId, k->stream = r->streamId;
	if (r->name) snprintf(k->name, sizeof k->name, "%s", r->name);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
	void *r = 0;
	size_t n = 0;
	pthread_mutex_lock(&mu);
	while (valid && x.next(buffer, valid, &r) == 0)
		if (((struct record *)r)->kind == concurrent_kernel) keep(r);
	if (x.dropped && x.dropped(context, stream, &n) == 0) lost += n;
	pthread_mutex_unlock(&mu);
	free(buffer);
}

const char *glmbatch_cupti_load(const char *path) {
	static char text[512];
	void *lib = dlopen(path, RTLD_NOW);
	if (!lib) {
		const char *e = dlerror();
		snprintf(text, sizeof text, "%s", e ? e : path);
		return text;
	}
#define FIND(f, n) \
	if (!(*(void **)&x.f = dlsym(lib, n))) return "it lacks " n
	FIND(version, "cuptiGetVersion");
	FIND(result, "cuptiGetResultString");
	FIND(enable, "cuptiActivityEnable");
	FIND(disable, "cuptiActivityDisable");
	FIND(flush, "cuptiActivityFlushAll");
	FIND(callbacks, "cuptiActivityRegisterCallbacks");
	FIND(next, "cuptiActivityGetNextRecord");
	FIND(dropped, "cuptiActivityGetNumDroppedRecords");
	FIND(clock, "cuptiActivityRegisterTimestampCallback");
	const char *e = why("cuptiActivityRegisterTimestampCallback", x.clock(glmbatch_cupti_now));
	return e ? e : why("cuptiActivityRegisterCallbacks", x.callbacks(request, complete));
}

uint32_t glmbatch_cupti_version(void) {
	uint32_t v = 0;
	return x.version && x.version(&v) == 0 ? v : 0;
}

const char *glmbatch_cupti_start(void) { return why("cuptiActivityEnable", x.enable(concurrent_kernel)); }
const char *glmbatch_cupti_stop(void) { return why("cuptiActivityDisable", x.disable(concurrent_kernel)); }

const char *glmbatch_cupti_take(struct glmbatch_kernel **out, size_t *n, size_t *dropped) {
	const char *e = why("cuptiActivityFlushAll", x.flush(0));
	pthread_mutex_lock(&mu);
	*out = kernels, *n = have, *dropped = lost;
	kernels = 0, have = room = lost = 0;
	pthread_mutex_unlock(&mu);
	return e;
}
