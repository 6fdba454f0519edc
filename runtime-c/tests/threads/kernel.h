/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the kernel that the path of a hit uses, for user space; included before
 * everything else (-include). A CPU is a thread, which sets this_cpu; nothing interrupts it. The
 * kernel's atomics, loads, stores and barriers are C11's of the same order, through shim_*():
 * explore.h has others, which try all interleavings.
 */
#ifndef SPILE_TESTS_KERNEL_H
#define SPILE_TESTS_KERNEL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/types.h>

#define __KERNEL__ 1

/* ---- Types and the compiler. */

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
typedef unsigned int gfp_t;
typedef unsigned short umode_t;
typedef s64 ktime_t;
typedef struct { unsigned int val; } kuid_t;

#define U32_MAX UINT32_MAX
#define U64_MAX (~0ull)
#define S64_MAX ((s64)(U64_MAX >> 1))

#undef __always_inline
#define __always_inline inline __attribute__((always_inline, unused))
#define noinline __attribute__((noinline, unused))
#define __must_check __attribute__((warn_unused_result))
#define __printf(a, b) __attribute__((format(printf, a, b)))
#define __read_mostly
#define __init
#define __exit
#define __user
#define __percpu
#define __maybe_unused __attribute__((unused))
#define __aligned(n) __attribute__((aligned(n)))
#define fallthrough __attribute__((fallthrough))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ volatile("" : : : "memory")
#define static_assert _Static_assert
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define IS_ENABLED(option) 0
#define ARRAY_SIZE(array) (sizeof(array) / sizeof(*(array)))
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

#define SMP_CACHE_BYTES 64
#define L1_CACHE_BYTES 64
#define ____cacheline_aligned_in_smp __aligned(SMP_CACHE_BYTES)
#define ____cacheline_aligned __aligned(SMP_CACHE_BYTES)

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp(value, low, high) min(max(value, low), high)
#define clamp_t(type, value, low, high) clamp((type)(value), (type)(low), (type)(high))
#define ALIGN(value, to) (((value) + (to) - 1) & ~((__typeof__(value))(to) - 1))
#define DIV_ROUND_UP(a, b) (((a) + (b) - 1) / (b))
#define round_down(value, to) ((value) & ~((__typeof__(value))(to) - 1))
#define roundup_pow_of_two(n) ((n) < 2 ? 1ul : 1ul << (64 - __builtin_clzl((n) - 1ul)))
#define rounddown_pow_of_two(n) (1ul << (63 - __builtin_clzl(n)))
#define ilog2(n) (63 - __builtin_clzll(n))
#define div_u64(a, b) ((a) / (b))
#define div64_u64(a, b) ((a) / (b))
#define check_add_overflow(a, b, sum) __builtin_add_overflow(a, b, sum)
#define check_mul_overflow(a, b, product) __builtin_mul_overflow(a, b, product)

static inline size_t array_size(size_t number, size_t bytes)
{
	size_t product;

	return __builtin_mul_overflow(number, bytes, &product) ? SIZE_MAX : product;
}

/* ---- Order of memory. */

#ifdef SPILE_TESTS_EXPLORE
#include "explore.h"
#else
#ifdef SPILE_TESTS_PAUSES
/* Called before each access that other threads may see: now and then it lets them run. */
static inline __attribute__((no_sanitize("thread"))) void shim_pause(void)
{
	static __thread u64 state;
	unsigned int turns;

	if (!state)
		state = (uintptr_t)&state * 0x9e3779b97f4a7c15ull | 1;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	if (state % 128 == 0)
		for (turns = state >> 32 & 255; turns; turns--)
			__builtin_ia32_pause();
	if (state % 4096 == 1)
		sched_yield();
}
#else
#define shim_pause() ((void)0)
#endif
#define shim_load(at, order) ({ shim_pause(); __atomic_load_n(at, order); })
#define shim_store(at, value, order) ({ shim_pause(); __atomic_store_n(at, value, order); })
#define shim_exchange(at, value, order) ({ shim_pause(); __atomic_exchange_n(at, value, order); })
#define shim_add(at, value, order) ({ shim_pause(); __atomic_add_fetch(at, value, order); })
#define shim_fence(order) __atomic_thread_fence(order)
#define shim_cmpxchg(at, old, new, order) ({ \
		__typeof__(*(at)) seen_ = (old); \
		shim_pause(); \
		__atomic_compare_exchange_n(at, &seen_, new, false, order, __ATOMIC_RELAXED); \
		seen_; \
	})
#ifdef SPILE_TESTS_CLOCK
/* Lets time pass, and others run. */
void shim_relax(void);
#define cpu_relax() shim_relax()
#else
/* The thread that is waited for may need this CPU: there are fewer CPUs than threads. */
static inline void cpu_relax(void)
{
	static __thread unsigned int turns;

	if (++turns % 64)
		__builtin_ia32_pause();
	else
		sched_yield();
}
#endif
#endif

/* The running task, for recordings. */
#define TASK_COMM_LEN 16
static struct {
	char comm[TASK_COMM_LEN];
} the_task __maybe_unused;
#define current (&the_task)
#define task_tgid_nr(task) 1
#define task_pid_nr(task) 1
#define strscpy(to, from, bytes) snprintf(to, bytes, "%s", from)

#define data_race(value) (value)
#define __no_kcsan __attribute__((no_sanitize("thread"), __noinline__))
#define __section(name)
#define READ_ONCE(place) shim_load(&(place), __ATOMIC_RELAXED)
#define WRITE_ONCE(place, value) shim_store(&(place), (__typeof__(place))(value), __ATOMIC_RELAXED)
#define smp_load_acquire(at) shim_load(at, __ATOMIC_ACQUIRE)
#define smp_store_release(at, value) shim_store(at, (__typeof__(*(at)))(value), __ATOMIC_RELEASE)
#define smp_mb() shim_fence(__ATOMIC_SEQ_CST)
#define smp_rmb() shim_fence(__ATOMIC_ACQUIRE)
#define smp_wmb() shim_fence(__ATOMIC_RELEASE)
#define smp_mb__before_atomic() smp_mb()
#define smp_mb__after_atomic() smp_mb()
#define xchg(at, value) shim_exchange(at, (__typeof__(*(at)))(value), __ATOMIC_SEQ_CST)
#define xchg_acquire(at, value) shim_exchange(at, (__typeof__(*(at)))(value), __ATOMIC_ACQUIRE)
#define cmpxchg(at, old, new) shim_cmpxchg(at, old, new, __ATOMIC_SEQ_CST)
#define cmpxchg_acquire(at, old, new) shim_cmpxchg(at, old, new, __ATOMIC_ACQUIRE)
#define cmpxchg_release(at, old, new) shim_cmpxchg(at, old, new, __ATOMIC_RELEASE)
#define cmpxchg_relaxed(at, old, new) shim_cmpxchg(at, old, new, __ATOMIC_RELAXED)
#define try_cmpxchg(at, old, new) ({ \
		__typeof__(*(at)) was_ = *(old), had_ = cmpxchg(at, was_, new); \
		*(old) = had_; \
		had_ == was_; \
	})

typedef struct { int counter; } atomic_t;
typedef struct { long counter; } atomic_long_t;
typedef struct { s64 counter; } atomic64_t;
#define ATOMIC_INIT(value) { value }
#define atomic_read(v) shim_load(&(v)->counter, __ATOMIC_RELAXED)
#define atomic_read_acquire(v) shim_load(&(v)->counter, __ATOMIC_ACQUIRE)
#define atomic_set(v, value) shim_store(&(v)->counter, value, __ATOMIC_RELAXED)
#define atomic_set_release(v, value) shim_store(&(v)->counter, value, __ATOMIC_RELEASE)
#define atomic_cmpxchg(v, old, new) cmpxchg(&(v)->counter, old, new)
#define atomic_cmpxchg_acquire(v, old, new) cmpxchg_acquire(&(v)->counter, old, new)
#define atomic_cmpxchg_release(v, old, new) cmpxchg_release(&(v)->counter, old, new)
#define atomic_try_cmpxchg(v, old, new) try_cmpxchg(&(v)->counter, old, new)
#define atomic_xchg(v, value) xchg(&(v)->counter, value)
#define atomic_xchg_acquire(v, value) xchg_acquire(&(v)->counter, value)
#define atomic_inc(v) ((void)shim_add(&(v)->counter, 1, __ATOMIC_RELAXED))
#define atomic_dec(v) ((void)shim_add(&(v)->counter, -1, __ATOMIC_RELAXED))
#define atomic_inc_return(v) shim_add(&(v)->counter, 1, __ATOMIC_SEQ_CST)
#define atomic_dec_return(v) shim_add(&(v)->counter, -1, __ATOMIC_SEQ_CST)
#define atomic_inc_return_acquire(v) shim_add(&(v)->counter, 1, __ATOMIC_ACQUIRE)
#define atomic_dec_return_release(v) shim_add(&(v)->counter, -1, __ATOMIC_RELEASE)
#define atomic_add_return(by, v) shim_add(&(v)->counter, by, __ATOMIC_SEQ_CST)
#define atomic_sub_return_release(by, v) shim_add(&(v)->counter, -(by), __ATOMIC_RELEASE)
/*
 * A bit is set by whoever has cleared it. TSan does not know of barriers that are no part of an
 * access: for it, as the kernel's callers have one before.
 */
#ifdef SPILE_TESTS_EXPLORE
#define SHIM_AFTER_BARRIER __ATOMIC_RELAXED
#else
#define SHIM_AFTER_BARRIER __ATOMIC_RELEASE
#endif
#define BITS_PER_LONG 64
#define BITS_TO_LONGS(bits) DIV_ROUND_UP(bits, BITS_PER_LONG)
#define __ffs(word) ((unsigned int)__builtin_ctzl(word))
#define set_bit(bit, bits) \
	((void)shim_add(&(bits)[(bit) / 64], 1ul << (bit) % 64, SHIM_AFTER_BARRIER))
#define test_and_clear_bit(bit, bits) ({ \
		unsigned long *word_ = &(bits)[(bit) / 64], mask_ = 1ul << (bit) % 64; \
		unsigned long seen_bits_ = READ_ONCE(*word_), was_bits_; \
		while (seen_bits_ & mask_) { \
			was_bits_ = cmpxchg(word_, seen_bits_, seen_bits_ & ~mask_); \
			if (was_bits_ == seen_bits_) \
				break; \
			seen_bits_ = was_bits_; \
		} \
		!!(seen_bits_ & mask_); \
	})
#define atomic_long_read atomic_read
#define atomic_long_set atomic_set
#define atomic_long_inc atomic_inc
#define atomic64_read atomic_read
#define atomic64_set atomic_set
#define atomic64_inc atomic_inc
#define atomic64_inc_return atomic_inc_return
#define atomic64_add_return atomic_add_return

/* Used by one CPU alone. */
typedef struct { long value; } local_t;
#define WARN_ON_ONCE(wrong) ((wrong) ? abort() : (void)0)
#define local_read(l) ((l)->value)
#define local_inc(l) ((void)(l)->value++)
#define local_dec(l) ((void)(l)->value--)
#define local_add(n, l) ((void)((l)->value += (n)))
#define local_set(l, to) ((void)((l)->value = (to)))

/* ---- CPUs. */

#ifndef SHIM_MOST_CPUS
#define SHIM_MOST_CPUS 16
#endif
extern __thread unsigned int this_cpu;
extern unsigned int shim_cpus;	/* that are possible */

#define nr_cpu_ids shim_cpus
#define NR_CPUS SHIM_MOST_CPUS
#define num_possible_cpus() shim_cpus
#define num_online_cpus() shim_cpus
/* All CPUs are there, and no others can come. */
struct cpumask;
#define cpu_possible_mask ((const struct cpumask *)NULL)
#define cpu_online_mask cpu_possible_mask
#define for_each_cpu(cpu, mask) \
	for ((void)(mask), (cpu) = 0; (unsigned int)(cpu) < shim_cpus; (cpu)++)
#define cpus_read_lock() ((void)0)
#define cpus_read_unlock() ((void)0)
#define CPUHP_BP_PREPARE_DYN 0
#define cpuhp_setup_state(state, name, up, down) (-ENODEV)
#define cpuhp_remove_state_nocalls(state) ((void)(state))
#define pr_err(...) ((void)0)
#define cpu_possible(cpu) ((unsigned int)(cpu) < shim_cpus)
#define cpu_online(cpu) cpu_possible(cpu)
#define cpu_active(cpu) cpu_online(cpu)
#define cpu_to_node(cpu) 0
/* RCU sees all readers here. */
enum { SPILE_IDLE_IS_PROBED = false };
#define on_each_cpu(function, argument, wait) ((function)(argument))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (unsigned int)(cpu) < shim_cpus; (cpu)++)
#define for_each_online_cpu(cpu) for_each_possible_cpu(cpu)
#define smp_processor_id() this_cpu
#define raw_smp_processor_id() this_cpu
#define DECLARE_PER_CPU(type, name) extern __typeof__(type) name[SHIM_MOST_CPUS]
#define DEFINE_PER_CPU(type, name) __typeof__(type) name[SHIM_MOST_CPUS]
#define per_cpu(name, cpu) (name)[cpu]
#define per_cpu_ptr(pointer, cpu) (&(*(pointer))[cpu])
#define this_cpu_read(name) (name)[this_cpu]
#define this_cpu_write(name, value) ((void)((name)[this_cpu] = (value)))
#define this_cpu_ptr(pointer) (&(*(pointer))[this_cpu])
#define preempt_disable() barrier()
#define preempt_enable() barrier()
#define preempt_disable_notrace() barrier()
#define preempt_enable_notrace() barrier()
#define raw_local_irq_save(flags) ((void)((flags) = 0))
#define raw_local_irq_restore(flags) ((void)(flags))
#define local_irq_save(flags) raw_local_irq_save(flags)
#define local_irq_restore(flags) raw_local_irq_restore(flags)
#define irqs_disabled() true
#define in_nmi() false
#define cond_resched() ((void)0)
#define synchronize_rcu() ((void)0)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)

/* ---- Time. */

#define NSEC_PER_SEC 1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull
#define ns_to_ktime(ns) ((ktime_t)(ns))

#ifdef SPILE_TESTS_CLOCK
/* The program's own clock, ns; a cycle takes one. */
extern u64 shim_clock;
#define ktime_get_mono_fast_ns() shim_clock
#define get_cycles() shim_clock
#else
#define get_cycles() __builtin_ia32_rdtsc()
#ifndef SPILE_TESTS_EXPLORE
static inline u64 ktime_get_mono_fast_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}
#endif
#endif
#define ktime_get_real_fast_ns() ktime_get_mono_fast_ns()
#define usleep_range(least, most) usleep(least)

/* Queued work runs when the thread has left the handler: shim_interrupts(). */
struct irq_work {
	void (*function)(struct irq_work *work);
	int pending;
};
#define init_irq_work(work, what) ((void)((work)->function = (what)))
void irq_work_queue(struct irq_work *work);
#define irq_work_sync(work) ((void)(work))

/* Work items run at once, one at a time; those that are to run later, never. */
struct work_struct {
	char unused;
};
struct delayed_work {
	void (*function)(struct work_struct *work);
};
#define DECLARE_DELAYED_WORK(name, what) struct delayed_work name = { .function = (what) }
#define HZ 250
void schedule_delayed_work(struct delayed_work *work, unsigned long after);
#define mod_delayed_work(queue, work, after) schedule_delayed_work(work, after)
#define spile_unbound_queue() NULL
#define cancel_delayed_work_sync(work) ((void)(work))

enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
enum { HRTIMER_MODE_REL_SOFT };
struct hrtimer {
	enum hrtimer_restart (*function)(struct hrtimer *timer);
};
/* Runs the timer's function: its time has come. */
void hrtimer_start(struct hrtimer *timer, ktime_t after, int mode);
#define hrtimer_cancel(timer) ((void)(timer))

/* In place of features.h, most of which is about kprobes and modules. */
#define SPILE_FEATURES_H
static inline void spile_hrtimer_setup(struct hrtimer *timer,
				       enum hrtimer_restart (*function)(struct hrtimer *timer),
				       int clock, int mode)
{
	(void)clock;
	(void)mode;
	timer->function = function;
}

/* ---- Memory. */

#define PAGE_SHIFT 12
#define PAGE_SIZE 4096
#define PAGE_ALIGN(bytes) ALIGN(bytes, (size_t)PAGE_SIZE)
#define GFP_KERNEL 0
#define GFP_KERNEL_ACCOUNT 0
#define __GFP_ZERO 0
#define __GFP_ACCOUNT 0
#define __GFP_RETRY_MAYFAIL 0
#define __GFP_NOWARN 0
#define totalram_pages() (1ul << 20)
#define si_mem_available() (1l << 20)

static inline void *shim_memory(size_t bytes)
{
	void *memory = aligned_alloc(PAGE_SIZE, ALIGN(max(bytes, (size_t)1), (size_t)PAGE_SIZE));

	return memory ? memset(memory, 0, bytes) : NULL;
}
#define kcalloc(number, bytes, flags) shim_memory(array_size(number, bytes))
#define kvcalloc kcalloc
#define kzalloc(bytes, flags) shim_memory(bytes)
#define kvzalloc kzalloc
#define kzalloc_node(bytes, flags, node) shim_memory(bytes)
#define kvzalloc_node kzalloc_node
#define vzalloc(bytes) shim_memory(bytes)
#define vzalloc_node(bytes, node) shim_memory(bytes)
#define __vmalloc(bytes, flags) shim_memory(bytes)
#define kvmalloc(bytes, flags) ((void)(flags), shim_memory(bytes))
#define kvmalloc_node(bytes, flags, node) ((void)(flags), shim_memory(bytes))
#define kfree(memory) free(memory)
#define kvfree(memory) free(memory)
#define vfree(memory) free(memory)

void get_random_bytes(void *at, size_t bytes);

/* ---- Text. */

static inline int vscnprintf(char *out, size_t bytes, const char *format, va_list arguments)
{
	int length = vsnprintf(out, bytes, format, arguments);

	return length < (int)bytes ? length : (int)bytes - 1;
}
static inline __printf(3, 4) int scnprintf(char *out, size_t bytes, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vscnprintf(out, bytes, format, arguments);
	va_end(arguments);
	return length;
}

/* ---- Definitions without effect. */

#define CLOCK_MONOTONIC 1
/* One thread alone takes any. */
struct mutex { int unused; };
#define DEFINE_MUTEX(name) struct mutex name
#define mutex_lock(lock) ((void)(lock))
#define mutex_unlock(lock) ((void)(lock))
struct pid;
struct pt_regs {
	unsigned long ip;
};
struct perf_event;
struct tracepoint;
struct nf_hook_ops;
struct module;
struct kprobe { int unused; };
struct kretprobe { struct kprobe kp; };
struct uprobe_consumer { int unused; };
struct kretprobe_instance { void *ret_addr; };
struct ftrace_ops { int unused; };
struct inode;
struct file;
struct page;
struct poll_table_struct;
struct list_head { struct list_head *next, *prev; };
struct wait_queue_head { int unused; };
typedef unsigned int vm_fault_t;
struct vm_area_struct;
struct vm_fault { struct vm_area_struct *vma; unsigned long pgoff, address; };
struct vm_operations_struct { vm_fault_t (*fault)(struct vm_fault *fault); };
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_pgoff, vm_flags;
	const struct vm_operations_struct *vm_ops;
};
#define VM_FAULT_SIGBUS 2
#define spile_map_first(vma, memory) ((void)(vma), (void)(memory), 0)
#define spile_map_missing(fault, memory) ((void)(fault), (void)(memory), 0)
#define DECLARE_WAIT_QUEUE_HEAD(name) struct wait_queue_head name
#define VM_SHARED 8
#define EPOLLIN 1u
#define EPOLLRDNORM 64u
#define EPOLLPRI 2u
#define EPOLLHUP 16u
#define poll_requested_events(table) ((void)(table), EPOLLIN)
void poll_wait(struct file *file, struct wait_queue_head *queue, struct poll_table_struct *table);
void wake_up_interruptible(struct wait_queue_head *queue);

#endif
