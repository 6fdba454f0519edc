/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files that also compile in user space (format.c, pretty.c, map.c, stats.c,
 * iterate.c and more, for their tests) need from either world: fixed-width types, memory
 * functions, the order of loads and stores, and the little-endian unaligned reads of
 * bytecode.
 */
#ifndef SPILE_PORTABLE_H
#define SPILE_PORTABLE_H

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/processor.h>
#include <linux/types.h>
#include <linux/string.h>
#define SPILE_CACHE_ALIGNED ____cacheline_aligned_in_smp
#else
#include <linux/types.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#define SPILE_CACHE_ALIGNED __attribute__((aligned(64)))
#define READ_ONCE(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define WRITE_ONCE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)
/* C11 orders at least as much as the kernel's barriers of the same names do. */
#define smp_load_acquire(at) __atomic_load_n((at), __ATOMIC_ACQUIRE) /* before all that follows */
#define smp_store_release(at, value) \
	__atomic_store_n((at), (value), __ATOMIC_RELEASE) /* after all that precedes */
#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE) /* loads before, then loads after */
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE) /* stores before, then stores after */
#define cmpxchg(at, old, new) __sync_val_compare_and_swap((at), (old), (new))
#define xchg(at, value) __atomic_exchange_n((at), (value), __ATOMIC_SEQ_CST)
#define container_of(at, type, member) ((type *)((char *)(at) - offsetof(type, member)))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define cpu_relax() sched_yield()	/* the awaited thread may need this CPU */
#endif

#include "abi/abi.h"

static inline __u16 spile_get_u16(const unsigned char *at)
{
	__u16 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline __u32 spile_get_u32(const void *at)
{
	__u32 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline __u64 spile_get_u64(const void *at)
{
	__u64 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/*
 * Bytecode being read. The reader checks `at < end` before an operation and
 * spile_code_has() before its operands; truncated bytecode ends the reading.
 */
struct spile_code {
	const unsigned char *at;
	const unsigned char *end;
};

static inline bool spile_code_has(const struct spile_code *code, size_t bytes)
{
	return (size_t)(code->end - code->at) >= bytes;
}

#endif
