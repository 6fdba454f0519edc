// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The part of the runtime that a hit uses, compiled against kernel.h; and the smallest possible
 * replacements of the other parts.
 */
#include <pthread.h>

#include "maps.h"	/* by build.sh: the units' groups of map_init.c and kept_text.c */
#include "../../context.c"
#include "../../guard.c"
#include "../../actions.c"
#ifdef SPILE_TESTS_UNLOCKED
/* For a check that tests notice missing locks. Stripes are locked as usual. */
#define spile_lock_all lock_all
#define spile_unlock_all unlock_all
static bool lock_all(const unsigned int *locks, unsigned int count);
static void unlock_all(const unsigned int *locks, unsigned int count);
#endif
#include "../../lock.c"
#ifdef SPILE_TESTS_UNLOCKED
#undef spile_lock_all
#undef spile_unlock_all
bool spile_lock_all(const unsigned int *locks, unsigned int count)
{
	(void)lock_all;
	(void)locks;
	(void)count;
	return true;
}

void spile_unlock_all(const unsigned int *locks, unsigned int count)
{
	(void)locks;
	(void)count;
}
#endif
#include "../../ring.c"
#include "../../record.c"
#include "../../arithmetic.c"
#include "../../string.c"
#include "../../text.c"
#include "../../format.c"
#include "../../histogram.c"
#include "../../float_text.c"
#include "../../pretty.c"
#include "../../regex.c"
#include "../../builtin_string.c"

#include "../../builtins.h"
#include "threads.h"

/* The parts that a script references by name (SPILE_USES()). Here hits are calls. */
struct spile_family {
	char unused;
};
const void *const spile_part_sites[1], *const spile_part_symbols[1], *const spile_part_arrays[1],
	*const spile_part_programs[1], *const spile_part_user_files[1],
	*const spile_part_settings[1], *const spile_part_program_counters[1];
const struct spile_family spile_kprobe_family, spile_kretprobe_family, spile_timer_family,
	spile_jiffies_family, spile_perf_family, spile_procfs_family, spile_watch_family,
	spile_uprobe_family, spile_uretprobe_family, spile_tracepoint_family,
	spile_syscall_family, spile_netfilter_family;

__thread unsigned int this_cpu;
unsigned int shim_cpus = 1;

int spile_session_state;
struct spile_session spile_session;
unsigned long spile_slide;

void get_random_bytes(void *at, size_t bytes)
{
	static u64 state = 0x5eed;
	unsigned char *out = at;

	while (bytes--) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		*out++ = state >> 56;
	}
}

/* ---- Interrupts: work that handlers have queued. */

static __thread struct irq_work *queued[4];
static __thread unsigned int queued_count;

void irq_work_queue(struct irq_work *work)
{
	/* One thread's, or of all of them. */
	if (queued_count == ARRAY_SIZE(queued) ||
	    __atomic_exchange_n(&work->pending, 1, __ATOMIC_ACQ_REL))
		return;
	queued[queued_count++] = work;
}

void schedule_delayed_work(struct delayed_work *work, unsigned long after)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

	if (after)
		return;
	pthread_mutex_lock(&one);
	work->function(NULL);
	pthread_mutex_unlock(&one);
}

void hrtimer_start(struct hrtimer *timer, ktime_t after, int mode)
{
	(void)after;
	(void)mode;
	timer->function(timer);
}

void shim_interrupts(void)
{
	unsigned int i;

	for (i = 0; i < queued_count; i++) {
		__atomic_store_n(&queued[i]->pending, 0, __ATOMIC_RELEASE);
		queued[i]->function(queued[i]);
	}
	queued_count = 0;
}

/* The reader polls. */
void wake_up_interruptible(struct wait_queue_head *queue)
{
	(void)queue;
}

void poll_wait(struct file *file, struct wait_queue_head *queue, struct poll_table_struct *table)
{
	(void)file;
	(void)queue;
	(void)table;
}

/* ---- The session, and other parts that are not on the path of a hit. */

void spile_session_look_after(void)
{
}

bool spile_session_affords(const char *what, size_t shared, size_t for_each_cpu, unsigned int cpus)
{
	(void)what;
	(void)cpus;
	return shared != SIZE_MAX && for_each_cpu != SIZE_MAX;
}

u64 spile_owner_left(void)
{
	return U64_MAX;
}

bool spile_owner_has_limit(void)
{
	return false;
}

/* Here is one session. */
void spile_sessions_share(u32 own, u64 now, u64 interval, struct spile_other_shares *others)
{
	(void)own;
	(void)now;
	(void)interval;
	*others = (struct spile_other_shares){ 0 };
}

void spile_session_ask_stop(struct spile_cpu *cpu)
{
	WRITE_ONCE(spile_session_state, SPILE_STATE_STOPPING);
	spile_ring_exit(cpu);
}

void spile_exit(struct spile_context *c)
{
	spile_session_ask_stop(spile_cpu_of(c));
}

/* No user stacks are walked here. */
unsigned int spile_user_known_bytes(void)
{
	return 0;
}

void spile_conditions_look(struct spile_cpu *cpu)
{
	(void)cpu;
}

bool spile_budget_skips(const struct spile_site *site)
{
	(void)site;
	return false;
}

void spile_run_sampled(struct spile_site *site, unsigned long *regs)
{
	spile_run_whole(site, regs);
}

void spile_kretprobe_enter(struct spile_site *site, struct pt_regs *regs)
{
	(void)site;
	(void)regs;
}

void spile_return_pool_enter(struct spile_site *site, struct pt_regs *regs)
{
	(void)site;
	(void)regs;
}

int spile_memory_read(void *to, spile_ulong address, size_t bytes, bool user)
{
	(void)user;
	memcpy(to, (const void *)(uintptr_t)address, bytes);
	return 0;
}

int spile_memory_string(char *out, unsigned int most, spile_ulong address, bool user)
{
	(void)out;
	(void)most;
	(void)address;
	(void)user;
	return -EFAULT;
}

void spile_symbol_text(char *text, unsigned long address)
{
	snprintf(text, SPILE_SYMBOL_TEXT, "0x%lx", address);
}

unsigned long spile_per_cpu_offset(void)
{
	return 0;
}

/* ---- Sites, as site.c has them. */

struct spile_site *spile_sites;

static void make_sites(void)
{
	unsigned int i;

	spile_sites = shim_memory(spile_script.probe_count * sizeof(*spile_sites));
	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_site *site = &spile_sites[i];

		site->probe = &spile_script.probes[i];
		site->index = i;
		site->counts_at = SPILE_COUNTS_AT + i * sizeof(struct spile_counts);
		site->runs = SPILE_RUNS_WHOLE;
		if (site->probe->counts_only && site->probe->adds_to) {
			site->runs = SPILE_RUNS_ADDING;
			site->counter_at = spile_counters_at() +
					   (site->probe->adds_to - 1) * sizeof(spile_long);
			site->addend = site->probe->addend;
		} else if (site->probe->counts_only) {
			site->counting = site->probe->handler;
			site->runs = site->probe->registers ? SPILE_RUNS_COUNTING_BY :
							      SPILE_RUNS_COUNTING;
		} else if (site->probe->simple) {
			site->runs = SPILE_RUNS_SIMPLE;
		}
	}
}

/* In ascending order, as spile_sites_in_order(); there are few. */
static void run_all(enum spile_probe_kind kind, enum spile_state state)
{
	bool more = true;
	spile_long order;
	unsigned int i;

	WRITE_ONCE(spile_session_state, state);
	for (order = LLONG_MIN; more; order++) {
		spile_long next = LLONG_MAX;

		more = false;
		for (i = 0; i < spile_script.probe_count; i++) {
			const struct spile_probe *probe = &spile_script.probes[i];

			if (probe->kind != kind || probe->order < order)
				continue;
			if (probe->order == order)
				spile_context_run(&spile_sites[i], state, NULL);
			else
				next = min(next, probe->order);
			more |= probe->order > order;
		}
		if (more)
			order = next - 1;
	}
	shim_interrupts();
}

void shim_load_script(u32 ring_bytes)
{
	make_sites();
	spile_actions_init();
	if (spile_context_init() || spile_maps_init() || spile_lock_init()) {
		fprintf(stderr, "no memory for the script\n");
		exit(2);
	}
	spile_scalars_init();
	spile_ring_init();
	if (spile_ring_setup(ring_bytes))
		exit(2);
	/* Time no runs but the first: the scripts are built with STP_NO_OVERLOAD. One more must not be 0. */
	spile_untimed = LONG_MAX;
	shim_begin_script();
}

void shim_begin_script(void)
{
	run_all(SPILE_PROBE_BEGIN, SPILE_STATE_STARTING);
	if (spile_session_state == SPILE_STATE_STARTING)
		spile_session_state = SPILE_STATE_RUNNING;
}

void shim_end_script(void)
{
	spile_session_state = SPILE_STATE_STOPPED;
	run_all(SPILE_PROBE_END, SPILE_STATE_STOPPED);
}

void shim_hit(unsigned int probe, unsigned long *regs)
{
	spile_run_site(&spile_sites[probe], regs);
	if (unlikely(queued_count))
		shim_interrupts();
}

struct shim_totals shim_totals(void)
{
	struct shim_totals totals = { 0 };
	unsigned int cpu, i;

	for (cpu = 0; cpu < shim_cpus; cpu++) {
		for (i = 0; i < spile_script.probe_count; i++) {
			const struct spile_counts *counts = &spile_cpus[cpu]->counts[i];

			if (spile_script.probes[i].kind <= SPILE_PROBE_ERROR)
				continue;
			totals.handled += counts->handled.value;
			totals.skipped += counts->nested.value + counts->lock_skipped.value +
					  counts->low_stack.value + counts->stopped.value;
			totals.errors += counts->errors.value;
		}
		totals.lost += spile_cpus[cpu]->lost_records;
	}
	return totals;
}

struct spile_ring_header *shim_ring(unsigned int cpu)
{
	return spile_cpus[cpu]->ring;
}

const struct spile_record *shim_record(const struct spile_ring_header *ring, u64 at)
{
	u32 chunk = ring->places[at / ring->chunk_bytes % SPILE_RING_PLACES];

	return (const struct spile_record *)(chunks[chunk] + at % ring->chunk_bytes);
}

/* ---- Builtins of the scripts: a thread is a process; pid() is what it was given. */

__thread spile_long shim_argument;
spile_long shim_target;

spile_long spile_fn_tid(struct spile_context *c)
{
	(void)c;
	return 1000 + this_cpu;
}

spile_long spile_fn_pid(struct spile_context *c)
{
	(void)c;
	return shim_argument;
}

spile_long spile_fn_cpu(struct spile_context *c)
{
	(void)c;
	return this_cpu;
}

spile_long spile_fn_target(struct spile_context *c)
{
	(void)c;
	return shim_target;
}

/* As cargo xtask model --parallel expects it. */
spile_long spile_fn_uid(struct spile_context *c)
{
	(void)c;
	return this_cpu;
}

static unsigned int copy_text(char *out, const char *text)
{
	return spile_string_copy(out, (struct spile_string){ text, strlen(text) });
}

unsigned int spile_fn_pp(struct spile_context *c, char *out)
{
	return copy_text(out, c->probe->point);
}

unsigned int spile_fn_probefunc(struct spile_context *c, char *out)
{
	return copy_text(out, c->probe->function);
}

/* What probefunc() of a profile is: no symbol is hit here. */
unsigned int spile_fn_hit_function(struct spile_context *c, char *out)
{
	return copy_text(out, c->probe->function);
}

/* With what an earlier, longer name has left. */
static const char *comm_of_thread(void)
{
	return this_cpu % 2 ? "process-b\0abcde" : "process-a\0abcde";
}

unsigned int spile_fn_execname(struct spile_context *c, char *out)
{
	(void)c;
	return spile_string_copy(out, (struct spile_string){ comm_of_thread(), 9 });
}

void spile_stats_add_execname(struct spile_context *c, const struct spile_map *map,
			      spile_long value)
{
	spile_stats_add_name(c, map, comm_of_thread(), value);
}

void spile_map_count_execname(struct spile_context *c, const struct spile_map *map,
			      spile_long delta)
{
	spile_map_count_name(c, map, comm_of_thread(), delta);
}

spile_long spile_fn_gettimeofday_ns(struct spile_context *c)
{
#ifdef SPILE_TESTS_PAUSES
	static __thread unsigned int turns;

	/* Yields, as a slow function would, so that other threads' events come in between. */
	if (++turns % 7 == 0)
		sched_yield();
#endif
	(void)c;
	return ktime_get_real_fast_ns();
}

void spile_fn_error(struct spile_context *c, struct spile_string text)
{
	spile_fail_text(c, "%.*s", (int)text.length, text.text);
}

void spile_fn_log(struct spile_context *c, struct spile_string text)
{
	char *at = spile_record_begin(c, SPILE_RECORD_PRINT, SPILE_FORMAT_TEXT,
				      SPILE_STRING_PART(text.length));

	spile_record_commit(c, spile_put_string(at, text));
}
