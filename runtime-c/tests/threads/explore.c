// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs lock.c, stripe.h, ring.c, parts.c and condition.c in all interleavings, with loads that see
 * old values, to check that their barriers suffice also on CPUs that reorder more than x86.
 *
 *     explore [SWITCHES [OLD [v|SCENARIO]]]
 *
 * The code is that of the runtime. Its atomics are steps; the thread can change between any two
 * of them. An execution has at most SWITCHES (3) changes in which the old thread could have
 * continued, and at most OLD (2) loads that do not see the newest value. The memory model is
 * C11's without cycles of relaxed accesses; for the operations used here it is like the
 * kernel's: each place has the list of all values that were stored there, and each thread has,
 * for each place, the oldest value that it may still see. An acquire adopts the view of the
 * store that it reads from, if that was a release; a full barrier exchanges views with all other
 * full barriers. All executions are tried one after the other: each repeats the choices of the
 * one before, except for the last. v prints how many were tried.
 *
 * Protected data is accessed through touch(): the thread must have seen the previous access,
 * else the two race. Prints errors and the number of executions.
 */
#include <setjmp.h>
#include <ucontext.h>

#include "kernel.h"

#define FEW_BYTES 32
/* Immediately. */
#define KEEP_AWAY_PART 8192
#include "../../lock.c"
#include "../../ring.c"
#include "../../parts.c"
#include "../../condition.c"

enum { THREADS = 3, PLACES = 48, VALUES = 64, STEPS = 2000, STACK = 64 << 10 };

__thread unsigned int this_cpu;
unsigned int shim_cpus = THREADS;
struct spile_session spile_session;
int spile_session_state = SPILE_STATE_RUNNING;
DEFINE_PER_CPU(struct spile_cpu *, spile_cpus);

/* A lock is given up after this many ns without progress, and one poll. */
static struct spile_probe the_probe;	/* with a condition */
const struct spile_script spile_script = {
	.lock_count = 1, .lock_wait = 4096, .probes = &the_probe, .probe_count = 1
};

/* ---- The stored values, and what threads have seen of them. */

struct view { u8 least[PLACES]; };

struct value {
	u64 value;
	struct view view;	/* passed on to a thread that acquires the store */
};

struct place {
	const void *at;
	unsigned int count;
	struct value values[VALUES];
};

struct thread {
	ucontext_t context;	/* with its stack; only to make the thread, as it takes system calls */
	jmp_buf start;		/* of an execution */
	jmp_buf at;
	bool made, begun, ended, waits;
	struct view view;
	struct view acquired;	/* by relaxed loads: for the next acquire fence */
	struct view released;	/* by the last release fence: of relaxed stores */
	u64 time;
};

static struct place places[PLACES];
static const void *places_at[PLACES];	/* the same, beside each other */
static unsigned int place_count;
static struct view barriers;
static struct thread threads[THREADS];
static unsigned int running, thread_count;
static ucontext_t explorer;

/* ---- Choices. */

static struct { u8 taken, of; } choices[STEPS];
static unsigned int chosen, known, switches, most_switches = 3, old_values, most_old_values = 2;
static unsigned long executions;
static unsigned long progress;	/* locks taken and records read, in all executions */
static const char *wrong;

/* Set when a failed execution is repeated, to print its steps. */
static bool traced;

static void trace_step(const char *what, const void *at, u64 value)
{
	if (traced)
		printf("  %u: %s %p %lld\n", running, what, at, (s64)value);
}

static void fail(const char *what)
{
	if (!wrong)
		wrong = what;
}

static unsigned int choose(unsigned int of)
{
	if (of < 2)
		return 0;
	if (chosen == STEPS) {
		fail("too many steps");
		return 0;
	}
	if (chosen == known) {
		choices[known].taken = 0;
		choices[known++].of = of;
	}
	return choices[chosen++].taken;
}

/* Advances to the choices of the next execution; false if there is none. */
static bool next_choices(void)
{
	while (known && choices[known - 1].taken + 1 == choices[known - 1].of)
		known--;
	if (!known)
		return false;
	choices[known - 1].taken++;
	return true;
}

static void join(struct view *to, const struct view *from)
{
	unsigned int i;

	for (i = 0; i < PLACES; i++)
		to->least[i] = max(to->least[i], from->least[i]);
}

static void go_on_with(unsigned int next)
{
	unsigned int last = running;

	if (next == last)
		return;
	running = next;
	this_cpu = next;
	/* Not swapcontext(): that is a system call. */
	if (_setjmp(threads[last].at))
		return;
	if (threads[next].begun)
		_longjmp(threads[next].at, 1);
	threads[next].begun = true;
	_longjmp(threads[next].start, 1);
}

/* must: this thread cannot continue, or lets others continue first. */
static void maybe_switch(bool must)
{
	unsigned int others[THREADS], count = 0, i;

	if (!must && switches >= most_switches)
		return;
	for (i = 0; i < thread_count; i++)
		if (i != running && !threads[i].ended && !threads[i].waits)
			others[count++] = i;
	if (must) {
		if (count)
			go_on_with(others[choose(count)]);
		return;
	}
	i = choose(count + 1);
	if (i) {
		switches++;
		go_on_with(others[i - 1]);
	}
}

static u64 stored(const void *at, unsigned int bytes)
{
	u64 value = 0;

	memcpy(&value, at, bytes);
	return value;
}

static struct place *place_of(const void *at, unsigned int bytes)
{
	unsigned int i;

	for (i = 0; i < place_count; i++)
		if (places_at[i] == at)
			return &places[i];
	if (place_count == PLACES) {
		fail("too many places");
		return &places[0];
	}
	places[place_count].at = at;
	places_at[place_count] = at;
	places[place_count].count = 1;
	memset(&places[place_count].values[0], 0, sizeof(places[0].values[0]));
	places[place_count].values[0].value = stored(at, bytes);
	return &places[place_count++];
}

static void append(struct place *place, u64 value, const struct view *view)
{
	struct view *own = &threads[running].view;
	unsigned int index = place - places;

	if (place->count == VALUES) {
		fail("too many stores");
		return;
	}
	trace_step("stores", place->at, value);
	own->least[index] = place->count;
	place->values[place->count].value = value;
	place->values[place->count].view = *view;
	place->values[place->count].view.least[index] = place->count;
	place->count++;
}

static bool acquires(int order)
{
	return order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static u64 see(struct place *place, unsigned int number, int order)
{
	struct thread *thread = &threads[running];

	thread->view.least[place - places] = number;
	join(acquires(order) ? &thread->view : &thread->acquired, &place->values[number].view);
	trace_step(number == place->count - 1 ? "sees" : "sees an old value of", place->at,
	     place->values[number].value);
	return place->values[number].value;
}

u64 explore_load(const void *at, unsigned int bytes, int order)
{
	struct place *place;
	unsigned int least, back;

	maybe_switch(false);
	place = place_of(at, bytes);
	least = threads[running].view.least[place - places];
	if (old_values >= most_old_values)
		least = place->count - 1;
	/* The newest first. */
	back = choose(place->count - least);
	old_values += back != 0;
	return see(place, place->count - 1 - back, order);
}

void explore_store(void *at, unsigned int bytes, u64 value, int order)
{
	struct thread *thread = &threads[running];
	struct place *place;

	maybe_switch(false);
	place = place_of(at, bytes);
	memcpy(at, &value, bytes);
	append(place, stored(at, bytes), releases(order) ? &thread->view : &thread->released);
}

static void full_barrier(void)
{
	struct thread *thread = &threads[running];

	join(&thread->view, &thread->acquired);
	join(&thread->view, &barriers);
	barriers = thread->view;
	thread->released = thread->view;
}

void explore_fence(int order)
{
	struct thread *thread = &threads[running];

	maybe_switch(false);
	trace_step("barrier", NULL, order);
	if (order == __ATOMIC_SEQ_CST)
		full_barrier();
	if (acquires(order))
		join(&thread->view, &thread->acquired);
	if (releases(order))
		thread->released = thread->view;
}

u64 explore_change(void *at, unsigned int bytes, enum explore_change change, u64 old, u64 value,
		   int order)
{
	struct thread *thread = &threads[running];
	struct place *place;
	struct view handed;
	u64 before;

	maybe_switch(false);
	if (order == __ATOMIC_SEQ_CST)
		full_barrier();
	place = place_of(at, bytes);
	handed = place->values[place->count - 1].view;
	before = see(place, place->count - 1, order);
	if (change != EXPLORE_COMPARE || !memcmp(&before, &old, bytes)) {
		if (change == EXPLORE_ADD)
			value += before;
		memcpy(at, &value, bytes);
		/* The view of the store that was read from is passed on as well. */
		join(&handed, releases(order) ? &thread->view : &thread->released);
		append(place, stored(at, bytes), &handed);
	}
	if (order == __ATOMIC_SEQ_CST)
		full_barrier();
	return before;
}

void explore_relax(void)
{
	maybe_switch(true);
}

u64 explore_time(void)
{
	return threads[running].time += 4096;
}

/* An access to protected data. Any two of them must be ordered. */
static void touch(void *at)
{
	struct place *place = place_of(at, 1);

	if (threads[running].view.least[place - places] != place->count - 1)
		fail("accesses race");
	append(place, 0, &(struct view){ { 0 } });
}

/* ---- Executions. */

struct scenario {
	const char *name;
	unsigned int threads;
	void (*reset)(void);
	void (*run)(unsigned int thread);
	void (*check)(void);
};

static const struct scenario *scenario;

static jmp_buf explorer_at;

/* Each execution begins after the first line, on the same stack. */
static void run_thread(void)
{
	if (!_setjmp(threads[running].start))
		swapcontext(&threads[running].context, &explorer);
	scenario->run(running);
	threads[running].ended = true;
	maybe_switch(true);
	_longjmp(explorer_at, 1);
}

static void execute(void)
{
	unsigned int i;

	place_count = chosen = switches = old_values = 0;
	memset(&barriers, 0, sizeof(barriers));
	scenario->reset();
	thread_count = scenario->threads;
	for (i = 0; i < thread_count; i++) {
		struct thread *thread = &threads[i];

		if (!thread->made) {
			thread->made = true;
			getcontext(&thread->context);
			thread->context.uc_stack.ss_sp = malloc(STACK);
			thread->context.uc_stack.ss_size = STACK;
			makecontext(&thread->context, run_thread, 0);
			running = i;
			swapcontext(&explorer, &thread->context);
		}
		thread->begun = thread->ended = thread->waits = false;
		thread->time = 0;
		memset(&thread->view, 0, sizeof(thread->view));
		memset(&thread->acquired, 0, sizeof(thread->acquired));
		memset(&thread->released, 0, sizeof(thread->released));
	}
	running = choose(thread_count);
	this_cpu = running;
	threads[running].begun = true;
	if (!_setjmp(explorer_at))
		_longjmp(threads[running].start, 1);
	scenario->check();
	executions++;
}

static bool explore(const struct scenario *which)
{
	scenario = which;
	known = 0;
	executions = progress = 0;
	wrong = NULL;
	do
		execute();
	while (!wrong && next_choices());
	/* A lock may be given up in some, but not in all. */
	if (progress < executions)
		fail("no thread makes progress");
	if (wrong) {
		printf("%s: %s\n", which->name, wrong);
		traced = true;
		execute();
		traced = false;
	}
	return !wrong;
}

/* ---- Locks. */

static u8 local_bytes[THREADS][SMP_CACHE_BYTES];
static struct lock the_locks[2];
static struct spile_stripe stripes[2];
static const struct spile_map the_map;
static struct spile_table the_table = { .map = &the_map, .stripes = stripes };
struct spile_table *spile_tables = &the_table;
/* Another array, whose lock comes after that of the first one. */
static struct spile_stripe other_stripe;
static const struct spile_map other_map = { .lock = 1 };
static struct spile_table other_table = { .map = &other_map, .stripes = &other_stripe };
static char other;
static struct spile_cpu lock_cpus[THREADS];
static char by_stripe[ARRAY_SIZE(stripes)];
static char by_cpu[THREADS], whole;
static struct spile_cpu the_cpu;

/* What earlier runs have waited does not count. */
static struct spile_context *begin_run(unsigned int cpu)
{
	lock_cpus[cpu].waited = (struct spile_waited){ 0 };
	return &lock_cpus[cpu].context;
}

static void reset_locks(void)
{
	unsigned int i;

	memset(the_locks, 0, sizeof(the_locks));
	memset(local_bytes, 0, sizeof(local_bytes));
	all_locks = the_locks;
	for (i = 0; i < THREADS; i++) {
		local_holders[i] = local_bytes[i];
		spile_cpus[i] = &lock_cpus[i];
		begin_run(i);
	}
}

static void reset_stripes(void)
{
	reset_locks();
	memset(stripes, 0, sizeof(stripes));
	the_locks[0].stripes = stripes;
	the_locks[0].stripe_count = ARRAY_SIZE(stripes);
	the_table.claimed = &the_locks[0].holders.counter;
	memset(&other_stripe, 0, sizeof(other_stripe));
	the_locks[1].stripes = &other_stripe;
	the_locks[1].stripe_count = 1;
	other_table.claimed = &the_locks[1].holders.counter;
}

static void use_stripe(unsigned int number)
{
	struct spile_stripe *stripe = &stripes[number];
	struct spile_context *c = begin_run(running);

	if (!spile_stripe_try(c, &stripe->holder, the_table.claimed) &&
	    !spile_stripe_wait(c, &the_table, stripe, false))
		return;
	progress++;
	touch(&by_stripe[number]);
	/* As spile_map_release(), whose store is not one of the modelled ones. */
	smp_store_release(&stripe->holder, NULL);
}

static void use(enum spile_lock_mode mode)
{
	const unsigned int locks[] = { 0 << 2 | mode };
	unsigned int i;

	begin_run(running);
	if (!spile_lock_all(locks, 1))
		return;
	progress++;
	for (i = 0; i < the_locks[0].stripe_count; i++)
		touch(&by_stripe[i]);
	/* Threads that only read, or only feed their own CPU's data, need not be ordered. */
	touch(&by_cpu[running]);
	if (mode == SPILE_LOCK_WRITE || mode == SPILE_LOCK_ALL) {
		touch(&whole);
		for (i = 0; i < thread_count; i++)
			if (i != running)
				touch(&by_cpu[i]);
	}
	spile_unlock_all(locks, 1);
}

static void check_locks(void)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		if (local_bytes[i][0])
			fail("a lock is still held");
	for (i = 0; i < ARRAY_SIZE(stripes); i++)
		if (stripes[i].holder)
			fail("a stripe is still held");
	if (other_stripe.holder)
		fail("a stripe is still held");
	for (i = 0; i < ARRAY_SIZE(the_locks); i++)
		if (the_locks[i].holders.counter)
			fail("a lock is still held");
}

static void one_stripe_one_all(unsigned int thread)
{
	if (thread)
		use_stripe(1);
	else
		use(SPILE_LOCK_ALL);
}

/* As hold_ascending() of map.c. */
static void use_both_stripes(void)
{
	struct spile_context *c = begin_run(running);
	unsigned int i;

	if (!spile_stripe_try(c, &stripes[0].holder, the_table.claimed) &&
	    !spile_stripe_wait(c, &the_table, &stripes[0], false))
		return;
	if (spile_stripe_try_another(c, &stripes[1].holder) ||
	    spile_stripe_wait(c, &the_table, &stripes[1], true)) {
		progress++;
		for (i = 0; i < ARRAY_SIZE(stripes); i++)
			touch(&by_stripe[i]);
		smp_store_release(&stripes[1].holder, NULL);
	}
	smp_store_release(&stripes[0].holder, NULL);
}

static void two_stripes_one_all(unsigned int thread)
{
	if (!thread)
		use(SPILE_LOCK_ALL);
	else if (thread == 1)
		use_both_stripes();
	else
		use_stripe(1);
}

/* Takes the stripe for a run that cannot be skipped any more. */
static void hold_late(const struct spile_table *table, struct spile_stripe *stripe)
{
	struct spile_context *c = begin_run(running);

	c->late = 1;
	if (!spile_stripe_try(c, &stripe->holder, table->claimed) &&
	    !spile_stripe_wait(c, table, stripe, false))
		fail("a stripe was not waited for");
	c->late = 0;
}

static void hold_whole_late(const struct spile_table *table)
{
	struct spile_context *c = begin_run(running);

	c->late = 1;
	if (!spile_stripes_lock(c, table))
		fail("an array was not waited for");
	c->late = 0;
}

/*
 * Runs that hold one array when they take the other, which they wait for until they get it: if
 * one takes them in the other order, they may wait for each other.
 */
static void one_array_after_the_other(unsigned int thread)
{
#ifdef EXPLORE_WITHOUT_ORDER
	const struct spile_table *first = &other_table, *second = &the_table;
#else
	const struct spile_table *first = &the_table, *second = &other_table;
#endif

	if (thread == 1) {
		hold_whole_late(first);
		hold_whole_late(second);
		touch(&by_stripe[0]);
		touch(&other);
		progress++;
		spile_stripes_unlock(second);
		spile_stripes_unlock(first);
		return;
	}
	hold_late(&the_table, &stripes[0]);
	touch(&by_stripe[0]);
	hold_late(&other_table, &other_stripe);
	touch(&other);
	progress++;
	smp_store_release(&other_stripe.holder, NULL);
	smp_store_release(&stripes[0].holder, NULL);
}

static void stripe_again(unsigned int thread)
{
	use_stripe(0);
	if (thread)
		use_stripe(0);
	else
		use(SPILE_LOCK_ALL);
}

static void two_local_one_all(unsigned int thread)
{
	use(thread ? SPILE_LOCK_LOCAL : SPILE_LOCK_ALL);
}

static void local_again(unsigned int thread)
{
	use(thread ? SPILE_LOCK_LOCAL : SPILE_LOCK_ALL);
	if (thread)
		use(SPILE_LOCK_LOCAL);
}

static void all_at_once(unsigned int thread)
{
	(void)thread;
	use(SPILE_LOCK_ALL);
}

static void readers_and_a_writer(unsigned int thread)
{
	use(thread ? SPILE_LOCK_READ : SPILE_LOCK_WRITE);
}

static void two_writers(unsigned int thread)
{
	use(thread == 2 ? SPILE_LOCK_READ : SPILE_LOCK_WRITE);
}

/*
 * ---- The ring: thread 0 writes records, thread 1 reads them as the loader does. Each record is a
 * chunk, and there are two: each later record is written where an earlier one has been read.
 */

enum { RECORDS = 3, RING_BYTES = 2 * FEW_BYTES };

static struct spile_ring_header the_header;
static char chunk_data[RING_BYTES / FEW_BYTES][FEW_BYTES] __aligned(8);
static char *chunk_list[ARRAY_SIZE(chunk_data)];
static unsigned long free_bits;
static u32 held[SPILE_RING_PLACES];
static char touched[ARRAY_SIZE(chunk_data)];
static unsigned int written, read_records;
static int queue;			/* of sleepers: its lock */
static bool registered;
static struct irq_work *pending;

void irq_work_queue(struct irq_work *work)
{
	pending = work;
}

void hrtimer_start(struct hrtimer *timer, ktime_t after, int mode)
{
	(void)after;
	(void)mode;
	timer->function(timer);
}

void poll_wait(struct file *file, struct wait_queue_head *unused, struct poll_table_struct *table)
{
	(void)file;
	(void)unused;
	(void)table;
	explore_change(&queue, sizeof(queue), EXPLORE_EXCHANGE, 0, 1, __ATOMIC_ACQ_REL);
	registered = true;
}

void wake_up_interruptible(struct wait_queue_head *unused)
{
	(void)unused;
	explore_change(&queue, sizeof(queue), EXPLORE_EXCHANGE, 0, 1, __ATOMIC_ACQ_REL);
	if (registered)
		threads[1].waits = false;
	registered = false;
}

/* The only worker is the thread that asks for one. */
int spile_session_ask_locked(void (*run)(void *argument), void *argument)
{
	run(argument);
	return 0;
}

/* Only spile_ring_setup() and records with text need these. */
u64 spile_owner_left(void)
{
	return 0;
}

void spile_session_look_after(void)
{
}

bool spile_session_affords(const char *what, size_t shared, size_t for_each_cpu, unsigned int cpus)
{
	(void)cpus;
	(void)what;
	(void)shared;
	(void)for_each_cpu;
	return false;
}

char *spile_put_string(char *at, struct spile_string s)
{
	(void)s;
	return at;
}

static void reset_ring(void)
{
	unsigned int i;

	memset(&the_cpu, 0, sizeof(the_cpu));
	memset(&the_header, 0, sizeof(the_header));
	the_cpu.ring = &the_header;
	memset(held, 0, sizeof(held));
	the_cpu.held = held;
	for (i = 0; i < ARRAY_SIZE(chunk_data); i++)
		chunk_list[i] = chunk_data[i];
	chunks = chunk_list;
	chunk_bytes = FEW_BYTES;
	chunk_most = chunk_count = ARRAY_SIZE(chunk_data);
	free_bits = (1ul << ARRAY_SIZE(chunk_data)) - 1;
	free_chunks = &free_bits;
	free_count.counter = ARRAY_SIZE(chunk_data);
	the_cpu.ready = 1;
	the_cpu.wake.function = wake_soon;
	the_cpu.wake_timer.function = wake_in_time;
	for (i = 0; i < THREADS; i++)
		spile_cpus[i] = &the_cpu;
	spile_ring_bytes = RING_BYTES;
	written = read_records = 0;
	registered = false;
	pending = NULL;
}

static void run_interrupts(void)
{
	struct irq_work *work = pending;

	pending = NULL;
	if (work)
		work->function(work);
}

static void write_records(void)
{
	struct spile_context *c = &the_cpu.context;
	unsigned int i;

	for (i = 0; i < RECORDS; i++) {
		char *at = spile_record_begin(c, SPILE_RECORD_PRINT, 0, 8);

		if (at) {
			touch(&touched[*held_at(&the_cpu, the_cpu.context.record_at)]);
			spile_record_commit(c, at + 8);
			written++;
		}
		run_interrupts();
	}
}

static void read_all(void)
{
	u64 head = shim_load(&the_header.head, __ATOMIC_ACQUIRE);
	u64 tail = the_header.tail;

	if (tail == head)
		return;
	for (; tail != head; tail += FEW_BYTES) {
		u32 *place = &the_header.places[tail / FEW_BYTES % SPILE_RING_PLACES];

		touch(&touched[READ_ONCE(*place) % ARRAY_SIZE(touched)]);
		read_records++;
		progress++;
	}
	shim_store(&the_header.tail, tail, __ATOMIC_RELEASE);
}

/* At most one iteration more than there are records; then all wake-ups have been used. */
static void read_records_as_loader(void)
{
	unsigned int i;

	for (i = 0; i < RECORDS + 1; i++) {
		read_all();
		shim_store(&the_header.waiting, 1, __ATOMIC_SEQ_CST);
		if (spile_ring_poll(NULL, NULL) & EPOLLIN)
			continue;
		if (registered && !threads[0].ended) {
			threads[1].waits = true;
			maybe_switch(true);
		} else if (registered) {
			/* No other thread will wake it. */
			threads[1].waits = true;
			return;
		}
	}
}

static void write_or_read(unsigned int thread)
{
	if (thread == 0)
		write_records();
	else
		read_records_as_loader();
}

static void check_ring(void)
{
	unsigned int i, count = the_cpu.chunk_end / FEW_BYTES - the_cpu.first_held / FEW_BYTES;

	for (i = 0; i < ARRAY_SIZE(chunk_data); i++)
		count += free_bits >> i & 1;
	if (count != ARRAY_SIZE(chunk_data))
		fail("a chunk is lost, or there twice");
	if (the_header.head != the_cpu.head)
		fail("the header is out of date");
	if (read_records > written)
		fail("more records were read than written");
	if (threads[1].waits && the_header.head != the_header.tail)
		fail("the reader sleeps although there is a record");
}

/* ---- A reserve of groups: one CPU fills it, two take from it. */

enum { PLACES_OF_RESERVE = 2, GROUPS = 4 };
static char groups[GROUPS];
static char *group_places[PLACES_OF_RESERVE];
static struct spile_reserve reserve;
static unsigned int taken_of_group[GROUPS], added;

void spile_parts_ask(void)
{
}

static void add_groups(unsigned int count)
{
	for (; count && added < GROUPS && spile_reserve_has_room(&reserve, 1); count--) {
		touch(&groups[added]);
		spile_reserve_add(&reserve, &groups[added++]);
	}
}

static void reset_reserve(void)
{
	reserve = (struct spile_reserve){ .groups = group_places,
					  .mask = PLACES_OF_RESERVE - 1,
					  .most = GROUPS };
	memset(group_places, 0, sizeof(group_places));
	memset(taken_of_group, 0, sizeof(taken_of_group));
	added = 0;
}

static void fill_or_take(unsigned int thread)
{
	unsigned int i;

	if (thread == 0) {
		for (i = 0; i < GROUPS; i++)
			add_groups(1);
		return;
	}
	for (i = 0; i < 2; i++) {
		char *group = take_group(&reserve);

		if (!group)
			continue;
		progress++;
		touch(group);
		taken_of_group[group - groups]++;
	}
}

static void check_reserve(void)
{
	unsigned int i, taken = 0;

	for (i = 0; i < GROUPS; i++) {
		if (taken_of_group[i] > 1)
			fail("a group is taken twice");
		taken += taken_of_group[i];
	}
	if (taken != reserve.taken || taken > added)
		fail("a group is lost");
	progress++;
}

/*
 * ---- A probe with a condition: thread 0 is the kernel's worker, which turns the probe; in thread
 * 1 a handler changes the variable of the condition.
 */

static const unsigned int read_lock[] = { 0 << 2 | SPILE_LOCK_READ };
static const unsigned int write_lock[] = { 0 << 2 | SPILE_LOCK_WRITE };
static struct spile_site the_site;
struct spile_site *spile_sites = &the_site;
static spile_long variable;		/* the probe is on if it is not 0 */
static bool with_lock;
static int queued;			/* the work item */
static bool handler_ended;

static void test_condition(struct spile_context *c)
{
	c->filtered = !READ_ONCE(variable);
}

static void turn_site(struct spile_site *site, bool on)
{
	(void)site;
	(void)on;
}

static const struct spile_family the_family = { .turn = turn_site };

/* Queueing and taking a work item are full barriers. */
void schedule_delayed_work(struct delayed_work *work, unsigned long after)
{
	(void)work;
	(void)after;
	xchg(&queued, 1);
}

void spile_families_commit(void)
{
}

void spile_actions_begin(struct spile_cpu *cpu)
{
	cpu->waited = (struct spile_waited){ 0 };
}

struct spile_cpu *spile_context_claim(void)
{
	return &lock_cpus[running];
}

void spile_context_release(struct spile_cpu *cpu)
{
	(void)cpu;
}

static void reset_conditions(bool locked, spile_long value)
{
	reset_locks();
	with_lock = locked;
	the_probe = (struct spile_probe){ .condition = test_condition,
					  .condition_locks = read_lock,
					  .condition_lock_count = locked };
	the_site = (struct spile_site){ .probe = &the_probe, .family = &the_family, .armed = true };
	variable = value;
	handler_ended = false;
	pending = NULL;
	requested.counter = 0;
	request.function = begin_turning;
	/* The variable has just been changed to this value. */
	the_site.off = value != 0;
	queued = 1;
}

static void reset_locked_condition(void)
{
	reset_conditions(true, 0);
}

static void reset_condition(void)
{
	reset_conditions(false, 0);
}

/* It is on and should be off, but could not be turned: its second is over. */
static void reset_late_condition(void)
{
	reset_conditions(true, 0);
	the_site.is_late = true;
}

/* A user has switched it off. */
static void reset_switched_condition(void)
{
	reset_conditions(false, 1);
	the_site.off = the_site.switched_off = true;
	queued = 0;
}

static void turn_as_worker(void)
{
	for (;;) {
		if (xchg(&queued, 0))
			turn_all(NULL);
		else if (handler_ended)
			return;
		else
			explore_relax();
	}
}

static void change_variable(void)
{
	unsigned int count = with_lock;

	begin_run(running);
	if (spile_lock_all(write_lock, count)) {
		WRITE_ONCE(variable, !variable);
		spile_unlock_all(write_lock, count);
		spile_conditions_look(&lock_cpus[running]);
		run_interrupts();
	}
	handler_ended = true;
}

static void turn_or_change(unsigned int thread)
{
	if (thread)
		change_variable();
	else
		turn_as_worker();
}

static void switch_or_change(unsigned int thread)
{
	const struct spile_switch on = { 0 };

	if (!thread)
		spile_condition_switch(&on);
	turn_or_change(thread);
}

static void check_condition(void)
{
	progress++;
	if (the_site.off == (variable != 0))
		fail(the_site.off ? "the probe stays off" : "the probe stays on");
	check_locks();
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "LOCAL, LOCAL, ALL", 3, reset_locks, two_local_one_all, check_locks },
		{ "LOCAL again, ALL", 2, reset_locks, local_again, check_locks },
		{ "ALL, ALL", 2, reset_locks, all_at_once, check_locks },
		{ "stripe, the same stripe, ALL", 3, reset_stripes, one_stripe_one_all,
		  check_locks },
		{ "two stripes, the second one, ALL", 3, reset_stripes, two_stripes_one_all,
		  check_locks },
		{ "two stripes, ALL", 2, reset_stripes, two_stripes_one_all, check_locks },
		{ "stripe again, ALL", 2, reset_stripes, stripe_again, check_locks },
		{ "one array after the other, all of both", 2, reset_stripes,
		  one_array_after_the_other, check_locks },
		{ "READ, READ, WRITE", 3, reset_locks, readers_and_a_writer, check_locks },
		{ "WRITE, WRITE, READ", 3, reset_locks, two_writers, check_locks },
		{ "a ring and its reader", 2, reset_ring, write_or_read, check_ring },
		{ "a reserve that is filled and used", 3, reset_reserve, fill_or_take,
		  check_reserve },
		{ "a condition under a lock", 2, reset_locked_condition, turn_or_change,
		  check_condition },
		{ "a condition without a lock", 2, reset_condition, turn_or_change,
		  check_condition },
		{ "a condition of a probe that is late", 2, reset_late_condition, turn_or_change,
		  check_condition },
		{ "a condition of a probe that is switched on", 2, reset_switched_condition,
		  switch_or_change, check_condition },
	};
	bool good = true, all = argc > 3 && !strcmp(argv[3], "v");
	const char *only = argc > 3 && !all ? argv[3] : NULL;
	unsigned int i, tried = 0;

	if (argc > 1)
		most_switches = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		most_old_values = strtoul(argv[2], NULL, 0);
	for (i = 0; i < ARRAY_SIZE(scenarios); i++) {
		if (only && strcmp(only, scenarios[i].name))
			continue;
		tried++;
		good &= explore(&scenarios[i]);
		if (all)
			printf("%s: %lu executions\n", scenarios[i].name, executions);
	}
	if (!tried) {
		fprintf(stderr, "explore: there is no scenario \"%s\"\n", only);
		return 2;
	}
	return !good;
}
