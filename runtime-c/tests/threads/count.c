// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts the cost of a hit for other CPUs. Two CPUs of one thread take turns at hitting the
 * probes of a compiled script. The runtime and the script are compiled with ThreadSanitizer's
 * calls, which this file implements, so all memory accesses are seen. Prints
 *
 *     locked N moved N shared N
 *
 * per hundred hits: atomic instructions; cache lines that a CPU had to fetch because the other
 * one had written them, or had to take from the other one to write; and the number of different
 * lines of that kind. Every run gives the same numbers. Accesses to the stack, and those of
 * inline assembly and of memcpy() of unknown length, are not seen; they are to a CPU's own
 * memory.
 */
#include "threads.h"

enum { CPUS = 2, WARM_UP = 4000, HITS = 1000, LINES = 1 << 16 };

struct line {
	uintptr_t address;	/* 0: none */
	int owner;		/* the CPU that wrote last; -1: none */
	bool held[CPUS];	/* in that CPU's cache */
	bool moved;
};

static struct line lines[LINES];
static u64 locked, moved;
static bool counting;
static uintptr_t stack;

static struct line *line_of(uintptr_t address)
{
	uintptr_t line = address / SMP_CACHE_BYTES + 1;
	unsigned int at = (line * 0x9e3779b97f4a7c15ull) >> 48;

	while (lines[at % LINES].address && lines[at % LINES].address != line)
		at++;
	lines[at % LINES].address = line;
	return &lines[at % LINES];
}

/* A line that was written is in one cache only; a line that was read may be in all. */
static void access_line(uintptr_t address, bool writes)
{
	struct line *line = line_of(address);
	unsigned int other = !this_cpu;

	if ((!line->held[this_cpu] && line->held[other]) || (writes && line->held[other])) {
		if (counting && (writes || line->owner == (int)other)) {
			moved++;
			line->moved = true;
		}
	}
	line->held[this_cpu] = true;
	if (writes) {
		line->held[other] = false;
		line->owner = this_cpu;
	}
}

static void access_memory(const volatile void *at, unsigned int bytes, bool writes)
{
	uintptr_t address = (uintptr_t)at, line;

	if (address - (stack - (1 << 20)) < 2 << 20)
		return;
	for (line = address / SMP_CACHE_BYTES; line <= (address + bytes - 1) / SMP_CACHE_BYTES;
	     line++)
		access_line(line * SMP_CACHE_BYTES, writes);
}

/* ---- Functions that the compiler calls. */

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_atomic_thread_fence(int order)
{
	/* Of these only a full barrier is an instruction on x86. */
	locked += counting && order == __ATOMIC_SEQ_CST;
}

#define ACCESSES(bytes) \
	void __tsan_read##bytes(void *at) { access_memory(at, bytes, false); } \
	void __tsan_write##bytes(void *at) { access_memory(at, bytes, true); } \
	void __tsan_unaligned_read##bytes(void *at) { access_memory(at, bytes, false); } \
	void __tsan_unaligned_write##bytes(void *at) { access_memory(at, bytes, true); } \
	void __tsan_volatile_read##bytes(void *at) { access_memory(at, bytes, false); } \
	void __tsan_volatile_write##bytes(void *at) { access_memory(at, bytes, true); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *at, size_t bytes)
{
	if (bytes)
		access_memory(at, bytes, false);
}

void __tsan_write_range(void *at, size_t bytes)
{
	if (bytes)
		access_memory(at, bytes, true);
}

#define ATOMICS(bits) \
	u##bits __tsan_atomic##bits##_load(const volatile u##bits *at, int order) \
	{ \
		(void)order; \
		access_memory(at, sizeof(*at), false); \
		return *at; \
	} \
	void __tsan_atomic##bits##_store(volatile u##bits *at, u##bits value, int order) \
	{ \
		locked += counting && order == __ATOMIC_SEQ_CST; \
		access_memory(at, sizeof(*at), true); \
		*at = value; \
	} \
	u##bits __tsan_atomic##bits##_exchange(volatile u##bits *at, u##bits value, int order) \
	{ \
		u##bits old = *at; \
		(void)order; \
		locked += counting; \
		access_memory(at, sizeof(*at), true); \
		*at = value; \
		return old; \
	} \
	u##bits __tsan_atomic##bits##_fetch_add(volatile u##bits *at, u##bits value, int order) \
	{ \
		return __tsan_atomic##bits##_exchange(at, *at + value, order); \
	} \
	u##bits __tsan_atomic##bits##_fetch_sub(volatile u##bits *at, u##bits value, int order) \
	{ \
		return __tsan_atomic##bits##_exchange(at, *at - value, order); \
	} \
	u##bits __tsan_atomic##bits##_fetch_or(volatile u##bits *at, u##bits value, int order) \
	{ \
		return __tsan_atomic##bits##_exchange(at, *at | value, order); \
	} \
	u##bits __tsan_atomic##bits##_fetch_and(volatile u##bits *at, u##bits value, int order) \
	{ \
		return __tsan_atomic##bits##_exchange(at, *at & value, order); \
	} \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile u##bits *at, u##bits *old, \
							  u##bits value, \
							  int order, int failed) \
	{ \
		bool same = *at == *old; \
		(void)order; \
		(void)failed; \
		locked += counting; \
		access_memory(at, sizeof(*at), true); \
		if (same) \
			*at = value; \
		else \
			*old = *at; \
		return same; \
	} \
	int __tsan_atomic##bits##_compare_exchange_weak(volatile u##bits *at, u##bits *old, \
							u##bits value, int order, \
							int failed) \
	{ \
		return __tsan_atomic##bits##_compare_exchange_strong(at, old, value, order, \
								     failed); \
	}
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

/* ---- Hits. */

static void empty_rings(void)
{
	unsigned int cpu;

	for (cpu = 0; cpu < CPUS; cpu++) {
		struct spile_ring_header *ring = shim_ring(cpu);

		ring->tail = ring->head;
	}
}

static void hit(unsigned int count, unsigned int first, unsigned int probes)
{
	unsigned long regs[32] = { 0 };
	unsigned int i;

	for (i = 0; i < count * probes; i++) {
		for (this_cpu = 0; this_cpu < CPUS; this_cpu++) {
			shim_argument = i % 64;
			shim_hit(first + i % probes, regs);
		}
	}
	this_cpu = 0;
}

int main(void)
{
	unsigned int first = 0, probes = 0, shared = 0, i;
	int here;

	stack = (uintptr_t)&here;
	for (i = 0; i < LINES; i++)
		lines[i].owner = -1;
	shim_cpus = CPUS;
	shim_load_script(8 << 20);
	while (spile_script.probes[first].kind <= SPILE_PROBE_ERROR)
		first++;
	while (first + probes < spile_script.probe_count &&
	       spile_script.probes[first + probes].kind > SPILE_PROBE_ERROR)
		probes++;
	hit(WARM_UP, first, probes);
	empty_rings();
	counting = true;
	hit(HITS, first, probes);
	counting = false;
	for (i = 0; i < LINES; i++)
		shared += lines[i].moved;
	printf("locked %llu moved %llu shared %u\n", locked * 100 / (HITS * CPUS),
	       moved * 100 / (HITS * CPUS), shared);
	return 0;
}
