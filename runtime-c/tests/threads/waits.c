// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long runs wait, and what waiting and skipping in vain does to the session, on a machine of
 * 256 CPUs. One thread is all of them, and time passes only in cpu_relax(): `meanwhile` says what
 * the other CPUs do then. Each case is a process, and a session, of its own. Prints what is wrong.
 */
#include <sys/wait.h>

#include "runtime.c"

enum {
	CPUS = 256,
	MICROSECOND = 1000,
	MILLISECOND = 1000 * MICROSECOND,
	LOCK_WAIT = MILLISECOND,
	MOST_WAIT = MOST_WAITS * LOCK_WAIT,
	HELD = 10,			/* stripes in one run */
};

/* ---- The script: one probe holds a lock while other CPUs run; one takes it; one takes stripes. */

enum { HOLDS, TAKES, TAKES_STRIPES, MAKES };
enum { THE_LOCK, THE_ARRAY, THE_AGGREGATE, LOCKS };

static const unsigned int the_lock[] = { THE_LOCK << 2 | SPILE_LOCK_WRITE };

static void (*while_held)(void);

static void hold_the_lock(struct spile_context *c)
{
	unsigned int cpu = this_cpu;

	(void)c;
	while_held();
	this_cpu = cpu;
}

static void do_nothing(struct spile_context *c)
{
	(void)c;
}

static const struct spile_map array = {
	.name = "a", .index = 0, .keys = 1, .value = SPILE_VALUE_LONG, .entries = 2048,
	.striped = 1, .lock = THE_ARRAY
};
static const struct spile_map aggregate = {
	.name = "s", .index = 1, .keys = 1, .value = SPILE_VALUE_STATS, .entries = 16,
	.lock = THE_AGGREGATE
};
static const struct spile_map *const maps[] = { &array, &aggregate };

static spile_long keys[HELD];	/* of the array, in different stripes, in their order */
static bool late;

static void take_stripes(struct spile_context *c)
{
	unsigned int i;

	for (i = 0; i < HELD; i++)
		spile_map_want(&array, &c->held[i], &(union spile_key){ .number = keys[i] });
	c->late = late;
	if (spile_map_hold_several(c, &array, c->held, HELD, 0))
		for (i = 0; i < HELD; i++)
			spile_map_add_one(c, &array, keys[i], 1);
	c->late = 0;
	for (i = 0; i < HELD; i++)
		spile_map_release(&c->held[i]);
}

static unsigned int made;
static void (*after_making)(void);

/* As many elements as it can. */
static void make_elements(struct spile_context *c)
{
	for (made = 0; made < HELD && spile_making_begin(c, &spile_tables[aggregate.index]); made++) {
		spile_making_end(&spile_tables[aggregate.index]);
		after_making();
	}
}

#define PROBE(number, what) \
	[number] = { .point = #what, .script_point = #what, .function = "", .module = "", \
		     .kind = SPILE_PROBE_TIMER, .handler = what, .target = -1, .index = number
static const struct spile_probe the_probes[] = {
	PROBE(HOLDS, hold_the_lock), .locks = the_lock, .lock_count = 1 },
	PROBE(TAKES, do_nothing), .locks = the_lock, .lock_count = 1 },
	PROBE(TAKES_STRIPES, take_stripes) },
	PROBE(MAKES, make_elements) },
};

/* Not const, so that a case can set limits before its session begins. */
struct spile_script the_script = {
	.name = "waits",
	.probes = the_probes,
	.probe_count = ARRAY_SIZE(the_probes),
	.lock_count = LOCKS,
	.maps = maps,
	.map_count = ARRAY_SIZE(maps),
	.frame_bytes = 64,
	.record_bytes = 64,
	.string_bytes = 64,
	.slot_bytes = 64,
	.stack_frames = 1,
	.max_actions = 1000,
	.max_nesting = 10,
	.max_skipped = 100,
	.lock_wait = LOCK_WAIT,
};
__asm__(".globl spile_script\n.set spile_script, the_script");

/* ---- The machine. */

u64 shim_clock = 1000 * NSEC_PER_SEC;
static void (*meanwhile)(void);

void shim_relax(void)
{
	shim_clock += MICROSECOND;
	if (meanwhile)
		meanwhile();
}

static void hit(unsigned int cpu, unsigned int probe)
{
	unsigned long regs[32] = { 0 };

	this_cpu = cpu;
	shim_hit(probe, regs);
}

static u64 skipped_on(unsigned int cpu)
{
	return spile_cpus[cpu]->counts[TAKES].lock_skipped.value;
}

static int wrong;
static const char *name;

static void expect(bool right, const char *what)
{
	if (right)
		return;
	wrong = 1;
	printf("%s: not so: %s\n", name, what);
}
#define EXPECT(condition) expect(condition, #condition)

static bool is_running(void)
{
	return READ_ONCE(spile_session_state) == SPILE_STATE_RUNNING;
}

/* ERROR records of all CPUs with this text in them. */
static unsigned int reports(const char *text)
{
	unsigned int cpu, count = 0;

	for (cpu = 0; cpu < CPUS; cpu++) {
		struct spile_ring_header *ring = shim_ring(cpu);
		u64 at;

		for (at = 0; at < ring->head; at += shim_record(ring, at)->bytes) {
			const struct spile_record *record = shim_record(ring, at);

			if (record->kind == SPILE_RECORD_ERROR)
				count += memmem(record, record->bytes, text, strlen(text)) != NULL;
		}
	}
	return count;
}

/* ---- Skips. CPU 0 holds the lock. */

static void each_other_cpu_once(void)
{
	unsigned int cpu;

	for (cpu = 1; cpu < CPUS; cpu++)
		hit(cpu, TAKES);
}

static void a_stop_of_the_holder(void)
{
	while_held = each_other_cpu_once;
	hit(0, HOLDS);
	EXPECT(shim_totals().skipped == CPUS - 1);
	EXPECT(is_running());
	hit(1, TAKES);
	EXPECT(spile_cpus[1]->counts[TAKES].handled.value == 1);
}

static void as_often_as_allowed(void)
{
	unsigned int i;

	for (i = 0; i < spile_script.max_skipped; i++)
		hit(1, TAKES);
}

static void once_more(void)
{
	as_often_as_allowed();
	EXPECT(is_running());
	hit(1, TAKES);
	EXPECT(!is_running());
}

static void too_many_on_one_cpu(void)
{
	while_held = once_more;
	hit(0, HOLDS);
	EXPECT(skipped_on(1) == spile_script.max_skipped + 1);
	EXPECT(spile_session.failed && spile_session.errors.counter == 1);
	EXPECT(reports("Skipped too many probes, check MAXSKIPPED") == 1);
}

static void the_first_one(void)
{
	hit(1, TAKES);
	EXPECT(!is_running());
}

static void none_allowed(void)
{
	while_held = the_first_one;
	hit(0, HOLDS);
	EXPECT(reports("Skipped too many probes, check MAXSKIPPED") == 1);
}

static void in_two_seconds(void)
{
	as_often_as_allowed();
	shim_clock += NSEC_PER_SEC;
	as_often_as_allowed();
}

static void not_in_one_second(void)
{
	while_held = in_two_seconds;
	hit(0, HOLDS);
	EXPECT(skipped_on(1) == 2 * spile_script.max_skipped);
	EXPECT(is_running());
}

/* CPU 2 crosses the limit while CPU 1 waits for the last time. */
static void cross_on_another(void)
{
	meanwhile = NULL;
	hit(2, TAKES);
	this_cpu = 1;
}

static void on_two_at_once(void)
{
	unsigned int i;

	as_often_as_allowed();
	for (i = 0; i < spile_script.max_skipped; i++)
		hit(2, TAKES);
	meanwhile = cross_on_another;
	hit(1, TAKES);
}

static void too_many_on_two_cpus(void)
{
	while_held = on_two_at_once;
	hit(0, HOLDS);
	EXPECT(skipped_on(1) == skipped_on(2) && skipped_on(1) == spile_script.max_skipped + 1);
	EXPECT(spile_session.errors.counter == 1);
	EXPECT(reports("Skipped too many") == 1);
}

/* ---- Waiting: others release what the run wants at last, and have it in turn until then. */

static u64 changes_after;	/* ns */
static u64 began_at;		/* the wait for the present stripe */
static unsigned int wanted;	/* its number in the run */

static struct spile_context **holder_of(unsigned int number)
{
	struct spile_table *table = &spile_tables[array.index];

	return &spile_stripe_of(table, spile_hash_long(table, keys[number]))->holder;
}

static void hand_over_stripes(void)
{
	struct spile_context **holder;

	if (wanted == HELD)
		return;
	holder = holder_of(wanted);
	if (shim_clock - began_at < changes_after) {
		*holder = &spile_cpus[2 + (*holder == &spile_cpus[2]->context)]->context;
		return;
	}
	*holder = NULL;
	began_at = shim_clock;
	wanted++;
}

/* Finds keys in different stripes, of which the others hold all but those before `from`. */
static void hold_by_others(unsigned int from, u64 for_each)
{
	struct spile_table *table = &spile_tables[array.index];
	struct spile_stripe *last = NULL;
	unsigned int found = 0;
	spile_long key;

	for (wanted = 0; wanted < SPILE_STRIPES && found < HELD; wanted++)
		for (key = 0; key < 4096; key++) {
			struct spile_stripe *stripe =
				spile_stripe_of(table, spile_hash_long(table, key));

			if (stripe != &table->stripes[wanted] || stripe == last)
				continue;
			keys[found++] = key;
			last = stripe;
		}
	for (wanted = 0; wanted < HELD; wanted++)
		*holder_of(wanted) = wanted < from ? NULL : &spile_cpus[2]->context;
	wanted = from;
	changes_after = for_each;
	began_at = shim_clock;
	meanwhile = hand_over_stripes;
}

static bool are_released(void)
{
	unsigned int i;

	for (i = 0; i < HELD; i++)
		if (*holder_of(i) == &spile_cpus[1]->context)
			return false;
	return true;
}

static void ten_stripes(void)
{
	u64 began = shim_clock;

	hold_by_others(0, MOST_WAIT * 9 / 10);
	hit(1, TAKES_STRIPES);
	EXPECT(shim_clock - began <= MOST_WAIT + 2 * MICROSECOND);
	EXPECT(spile_cpus[1]->counts[TAKES_STRIPES].lock_skipped.value == 1);
	EXPECT(are_released());
	/* The next run has its own time. */
	hold_by_others(HELD - 1, MOST_WAIT * 9 / 10);
	hit(1, TAKES_STRIPES);
	EXPECT(spile_cpus[1]->counts[TAKES_STRIPES].handled.value == 1);
	EXPECT(are_released());
}

static void ten_stripes_late(void)
{
	u64 began = shim_clock;

	late = true;
	hold_by_others(0, SPILE_LATE_WAIT / 10 * 9ull);
	hit(1, TAKES_STRIPES);
	EXPECT(shim_clock - began <= SPILE_LATE_WAIT + 2 * MICROSECOND);
	EXPECT(reports("the CPU that holds the lock of this array does not run") == 1);
	EXPECT(are_released());
}

static void make_elsewhere(void)
{
	spile_tables[aggregate.index].making = 1;
	began_at = shim_clock;
}

static void hand_over_making(void)
{
	if (shim_clock - began_at >= changes_after)
		spile_tables[aggregate.index].making = 0;
}

static void elements_of_an_aggregate(void)
{
	u64 began = shim_clock;

	changes_after = SPILE_LATE_WAIT / 10 * 9ull;
	meanwhile = hand_over_making;
	after_making = make_elsewhere;
	make_elsewhere();
	hit(1, MAKES);
	EXPECT(made == 1);
	EXPECT(shim_clock - began <= SPILE_LATE_WAIT + 10 * MILLISECOND);
	EXPECT(reports("array 's' is busy") == 1);
}

/* ---- The overhead of waiting for a lock that changes hands. */

static void hand_over_the_lock(void)
{
	all_locks[THE_LOCK].turns++;
	if (shim_clock - began_at >= changes_after)
		all_locks[THE_LOCK].holders.counter = 0;
}

/* Hits that wait so long each, and pause before the next one. */
static void wait_often(unsigned int hits, u64 wait, u64 pause)
{
	spile_untimed = SPILE_OVERLOAD_SAMPLE - 1;
	changes_after = wait;
	meanwhile = hand_over_the_lock;
	while (hits-- && is_running()) {
		all_locks[THE_LOCK].holders.counter = -1;
		began_at = shim_clock;
		hit(1, TAKES);
		shim_clock += pause;
	}
}

static void waiting_nearly_always(void)
{
	u64 began = shim_clock;

	wait_often(100, MOST_WAIT * 9 / 10, MILLISECOND);
	EXPECT(!is_running());
	EXPECT(shim_clock - began <= 4 * NSEC_PER_SEC);
	EXPECT(reports("probe overhead") == 1);
	EXPECT(spile_session.errors.counter == 1);
}

static void waiting_now_and_then(void)
{
	wait_often(100, 10 * MILLISECOND, 50 * MILLISECOND);
	EXPECT(is_running());
	EXPECT(spile_cpus[1]->counts[TAKES].handled.value == 100);
}

static void stop_this_cpu(void)
{
	shim_clock += 200 * MILLISECOND;
	all_locks[THE_LOCK].holders.counter = 0;
}

/* A hypervisor takes this CPU away while it waits. */
static void stopped_while_waiting(void)
{
	unsigned int i;

	spile_untimed = SPILE_OVERLOAD_SAMPLE - 1;
	meanwhile = stop_this_cpu;
	for (i = 0; i < 100; i++) {
		all_locks[THE_LOCK].holders.counter = -1;
		hit(1, TAKES);
	}
	EXPECT(is_running());
	EXPECT(spile_cpus[1]->counts[TAKES].handled.value == 100);
}

/* ---- Cases. */

static const struct {
	const char *name;
	void (*run)(void);
	unsigned int max_skipped;
} cases[] = {
	{ "a stop of the holder", a_stop_of_the_holder, 100 },
	{ "too many skips on one CPU", too_many_on_one_cpu, 100 },
	{ "too many skips on two CPUs at once", too_many_on_two_cpus, 100 },
	{ "no skip allowed", none_allowed, 0 },
	{ "skips in different seconds", not_in_one_second, 100 },
	{ "ten stripes", ten_stripes, 100 },
	{ "ten stripes, late", ten_stripes_late, 100 },
	{ "elements of an aggregate", elements_of_an_aggregate, 100 },
	{ "waiting nearly always", waiting_nearly_always, 100 },
	{ "waiting now and then", waiting_now_and_then, 100 },
	{ "stopped while waiting", stopped_while_waiting, 100 },
};

int main(void)
{
	unsigned int i;
	int failed = 0, status;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fflush(stdout);
		if (!fork()) {
			name = cases[i].name;
			the_script.max_skipped = cases[i].max_skipped;
			shim_cpus = CPUS;
			shim_load_script(1 << 16);
			cases[i].run();
			fflush(stdout);
			_exit(wrong);
		}
		if (wait(&status) < 0 || !WIFEXITED(status))
			printf("%s: ended by signal %d\n", cases[i].name, WTERMSIG(status));
		failed |= status != 0;
	}
	return failed;
}
