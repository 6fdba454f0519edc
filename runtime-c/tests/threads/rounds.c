// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs rounds of a few hits on several threads at the same time. Each round starts afresh: begin
 * probes, hits, end probes. Prints each different text that the end probes have logged.
 *
 *     rounds -t THREADS -n HITS -r ROUNDS
 *
 * Thread T hits the armed probes from T * HITS on, HITS of them, in their order. Prints `result
 * BYTES`, a line, and the text, for each; and at last
 *
 *     handled N skipped N errors N
 */
#include <pthread.h>

#include "threads.h"
#include "volatile.h"

enum { MOST_TEXT = 1 << 16 };

static unsigned int threads = 2;
static unsigned long hits = 1, rounds = 1;
static unsigned int first;	/* armed probe */

static unsigned long begun, done;	/* rounds; of all threads but the first together */
static u64 damaged;

struct result {
	struct result *next;
	unsigned int bytes;
	char text[];
};
static struct result *results;

/* ---- What end probes have logged on this CPU. */

static char text[MOST_TEXT];
static unsigned int text_bytes;

static void take_record(const struct spile_record *record)
{
	const char *payload = (const char *)(record + 1);
	u32 length;

	if (record->kind != SPILE_RECORD_PRINT || record->id != SPILE_FORMAT_TEXT) {
		damaged++;
		return;
	}
	memcpy(&length, payload, sizeof(length));
	if (length >= MOST_TEXT - text_bytes) {
		damaged++;
		return;
	}
	memcpy(text + text_bytes, payload + sizeof(length), length);
	text_bytes += length;
	text[text_bytes++] = '\n';
}

static void read_text(void)
{
	struct spile_ring_header *ring = shim_ring(this_cpu);
	u64 tail;

	text_bytes = 0;
	for (tail = ring->tail; tail != ring->head;) {
		const struct spile_record *record = shim_record(ring, tail);

		if (record->kind != SPILE_RECORD_PAD)
			take_record(record);
		tail += record->bytes;
	}
	ring->tail = tail;
}

static void keep_text(void)
{
	struct result *result;

	for (result = results; result; result = result->next)
		if (result->bytes == text_bytes && !memcmp(result->text, text, text_bytes))
			return;
	result = malloc(sizeof(*result) + text_bytes);
	if (!result)
		exit(2);
	result->next = results;
	result->bytes = text_bytes;
	memcpy(result->text, text, text_bytes);
	results = result;
}

/* ---- Rounds. */

static void hit_all(unsigned long round)
{
	unsigned long regs[32] = { 0 };
	u64 state = (round * SHIM_MOST_CPUS + this_cpu + 1) * 0x9e3779b97f4a7c15ull;
	unsigned int turns;
	unsigned long i;

	for (i = 0; i < hits; i++) {
		/*
		 * In each round threads meet in a different place; every other round has no
		 * pause.
		 */
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		for (turns = round % 2 ? state & 31 : 0; turns; turns--)
			__builtin_ia32_pause();
		shim_hit(first + this_cpu * hits + i, regs);
	}
}

static void *take_part(void *argument)
{
	unsigned long round;

	this_cpu = (uintptr_t)argument;
	for (round = 1; round <= rounds; round++) {
		/* Acquire: for the writes of the begin probes. */
		while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) < round)
			cpu_relax();
		hit_all(round);
		__atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t all[SHIM_MOST_CPUS];
	struct shim_totals totals;
	struct result *result;
	unsigned long round;
	unsigned int i;
	int option;

	while ((option = getopt(argc, argv, "t:n:r:")) != -1) {
		if (option == 't')
			threads = min(strtoul(optarg, NULL, 0), (unsigned long)SHIM_MOST_CPUS);
		else if (option == 'n')
			hits = strtoul(optarg, NULL, 0);
		else if (option == 'r')
			rounds = strtoul(optarg, NULL, 0);
		else
			exit(2);
	}
	shim_cpus = threads;
	shim_target = threads * hits;
	shim_load_script(1 << 20);
	while (first < spile_script.probe_count &&
	       spile_script.probes[first].kind <= SPILE_PROBE_ERROR)
		first++;
	if (first + threads * hits > spile_script.probe_count)
		exit(2);
	for (i = 1; i < threads; i++)
		pthread_create(&all[i], NULL, take_part, (void *)(uintptr_t)i);
	for (round = 1; round <= rounds; round++) {
		if (round > 1)
			shim_begin_script();
		__atomic_store_n(&begun, round, __ATOMIC_RELEASE);
		hit_all(round);
		while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < round * (threads - 1))
			cpu_relax();
		shim_end_script();
		read_text();
		keep_text();
	}
	for (i = 1; i < threads; i++)
		pthread_join(all[i], NULL);
	for (result = results; result; result = result->next) {
		printf("result %u\n", result->bytes);
		fwrite(result->text, 1, result->bytes, stdout);
	}
	totals = shim_totals();
	printf("handled %llu skipped %llu errors %llu\n", totals.handled, totals.skipped,
	       totals.errors + damaged);
	return 0;
}
