/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's atomics, loads, stores and barriers as steps of a small model checker
 * (explore.c): a load may see any value that its order does not rule out.
 */
#ifndef SPILE_TESTS_EXPLORE_H
#define SPILE_TESTS_EXPLORE_H

u64 explore_load(const void *at, unsigned int bytes, int order);
void explore_store(void *at, unsigned int bytes, u64 value, int order);
enum explore_change { EXPLORE_EXCHANGE, EXPLORE_ADD, EXPLORE_COMPARE };
/* Returns the old value. */
u64 explore_change(void *at, unsigned int bytes, enum explore_change change, u64 old, u64 value,
		   int order);
void explore_fence(int order);
/* Lets other threads continue first. */
void explore_relax(void);
u64 explore_time(void);

/* With one of these (EXPLORE_WITHOUT_*) a barrier is missing: explore.c must report an error. */
#if defined(EXPLORE_WITHOUT_ACQUIRE)
#define EXPLORE_ORDER(order) ((order) == __ATOMIC_ACQUIRE ? __ATOMIC_RELAXED : (order))
#elif defined(EXPLORE_WITHOUT_RELEASE)
#define EXPLORE_ORDER(order) ((order) == __ATOMIC_RELEASE ? __ATOMIC_RELAXED : (order))
#elif defined(EXPLORE_WITHOUT_FULL)
#define EXPLORE_ORDER(order) ((order) == __ATOMIC_SEQ_CST ? __ATOMIC_ACQ_REL : (order))
#else
#define EXPLORE_ORDER(order) (order)
#endif

#define shim_load(at, order) \
	((__typeof__(*(at)))explore_load((const void *)(at), sizeof(*(at)), EXPLORE_ORDER(order)))
#define shim_store(at, value, order) \
	explore_store((void *)(at), sizeof(*(at)), (u64)(value), EXPLORE_ORDER(order))
#define shim_exchange(at, value, order)                                                      \
	((__typeof__(*(at)))explore_change((void *)(at), sizeof(*(at)), EXPLORE_EXCHANGE, 0, \
					   (u64)(value), EXPLORE_ORDER(order)))
#define shim_add(at, value, order)                                                           \
	((__typeof__(*(at)))((__typeof__(*(at)))explore_change((void *)(at), sizeof(*(at)),  \
							       EXPLORE_ADD, 0, (u64)(value), \
							       EXPLORE_ORDER(order)) +       \
			     (value)))
#define shim_cmpxchg(at, old, new, order)                                                \
	((__typeof__(*(at)))explore_change((void *)(at), sizeof(*(at)), EXPLORE_COMPARE, \
					   (u64)(old), (u64)(new), EXPLORE_ORDER(order)))
#define shim_fence(order) explore_fence(EXPLORE_ORDER(order))
#define cpu_relax() explore_relax()
#define ktime_get_mono_fast_ns() explore_time()

#endif
