// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hits the probes of a compiled script from several threads at once, and reads its rings
 * meanwhile. Each thread is a CPU.
 *
 *     threads [-t THREADS] [-n HITS] [-k KEYS] [-r RING_BYTES] [-s] [-m]
 *
 * A thread makes HITS hits of the armed probes in turn. pid() of each is a random number from 0
 * to KEYS - 1; with -s it is the number of the hit. target() is the total number of hits. Prints
 * the output of log(), errors with `ERROR:` in front, and at the end
 *
 *     hits N handled N skipped N errors N lost N printed N sum N memory N
 *
 * printed: records of print(); sum: that of the longs in them; memory: bytes of the rings. Records that are damaged, out of
 * order or of another CPU are errors. With -m there is a line before it: nanoseconds from the
 * first hit to the last of all threads, and their CPU time. Then records are released unread
 * while threads hit: reading them takes a CPU that the threads are to have.
 */
#include <pthread.h>

#include "threads.h"
#include "../../ring.h"
#include "volatile.h"

static unsigned int threads = 4, keys = 64;
static unsigned long hits = 10000;
static bool numbered, measured;

static unsigned int armed[64], armed_count;
static int running;		/* threads that still hit */
static pthread_barrier_t begin;
static u64 processor_time;

static u64 printed, sum, damaged;

static u64 clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static void *hit_on(void *argument)
{
	unsigned long regs[32] = { 0 };
	unsigned long i;
	u64 state, began;

	this_cpu = (uintptr_t)argument;
	state = 0x9e3779b97f4a7c15ull * (this_cpu + 1);
	pthread_barrier_wait(&begin);
	began = clock_of(CLOCK_THREAD_CPUTIME_ID);
	for (i = 0; i < hits; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		shim_argument = numbered ? i : state % keys;
		shim_hit(armed[i % armed_count], regs);
	}
	__atomic_add_fetch(&processor_time, clock_of(CLOCK_THREAD_CPUTIME_ID) - began,
			   __ATOMIC_RELAXED);
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- The reader: as loader/src/records/ring.rs. */

static void show(const struct spile_record *record, const char *payload)
{
	unsigned int bytes = record->bytes - sizeof(*record), i;
	u32 length;

	memcpy(&length, payload, bytes >= 4 ? 4 : 0);
	if (record->kind == SPILE_RECORD_PRINT && record->id != SPILE_FORMAT_TEXT) {
		printed++;
		for (i = 0; i + 8 <= bytes; i += 8) {
			s64 number;

			memcpy(&number, payload + i, 8);
			sum += number;
		}
	} else if (record->kind == SPILE_RECORD_PRINT) {
		printf("%.*s\n", (int)length, payload + 4);
	} else if (record->kind != SPILE_RECORD_EXIT) {
		printf("ERROR: %.*s\n", (int)length, payload + 4);
	}
}

/* is_read: or else the records are only released. */
static void read_ring(unsigned int cpu, bool is_read)
{
	static u64 last[SHIM_MOST_CPUS];
	struct spile_ring_header *ring = shim_ring(cpu);
	u64 head, tail;

	/* Acquire: pairs with the release in spile_record_commit(). */
	head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	for (tail = is_read ? ring->tail : head; tail != head;) {
		const struct spile_record *record = shim_record(ring, tail);

		if (record->bytes < 8 || record->bytes % 8 ||
		    record->bytes > ring->chunk_bytes - tail % ring->chunk_bytes ||
		    record->bytes > head - tail) {
			damaged++;
			tail = head;
			break;
		}
		if (record->kind != SPILE_RECORD_PAD) {
			damaged += record->cpu != cpu || record->time < last[cpu];
			last[cpu] = record->time;
			show(record, (const char *)(record + 1));
		}
		tail += record->bytes;
	}
	/* Release: pairs with the acquire in has_room(). */
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->waiting, 1, __ATOMIC_SEQ_CST);
	/* Adds chunks. */
	spile_ring_poll(NULL, NULL);
}

static void read_rings(bool is_read)
{
	unsigned int cpu;

	for (cpu = 0; cpu < shim_cpus; cpu++)
		read_ring(cpu, is_read);
}

static void read_options(int argc, char **argv, u32 *ring_bytes)
{
	int option;

	while ((option = getopt(argc, argv, "t:n:k:r:sm")) != -1) {
		switch (option) {
		case 't':
			threads = min(strtoul(optarg, NULL, 0), (unsigned long)SHIM_MOST_CPUS);
			break;
		case 'n':
			hits = strtoul(optarg, NULL, 0);
			break;
		case 'k':
			keys = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			*ring_bytes = strtoul(optarg, NULL, 0);
			break;
		case 's':
			numbered = true;
			break;
		case 'm':
			measured = true;
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	pthread_t all[SHIM_MOST_CPUS];
	struct shim_totals totals;
	u32 ring_bytes = 1 << 20;
	unsigned int i;
	u64 began;

	read_options(argc, argv, &ring_bytes);
	shim_cpus = threads;
	shim_target = threads * hits;
	shim_load_script(ring_bytes);
	for (i = 0; i < spile_script.probe_count && armed_count < ARRAY_SIZE(armed); i++)
		if (spile_script.probes[i].kind > SPILE_PROBE_ERROR)
			armed[armed_count++] = i;
	running = threads;
	pthread_barrier_init(&begin, NULL, threads + 1);
	for (i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, hit_on, (void *)(uintptr_t)i);
	began = clock_of(CLOCK_MONOTONIC);
	pthread_barrier_wait(&begin);
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
		read_rings(!measured);
		usleep(500);
	}
	for (i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	if (measured)
		printf("elapsed %llu processor %llu\n", clock_of(CLOCK_MONOTONIC) - began,
		       processor_time);
	read_rings(true);
	shim_end_script();
	read_rings(true);
	totals = shim_totals();
	printf("hits %lu handled %llu skipped %llu errors %llu lost %llu printed %llu sum %llu memory %llu\n",
	       threads * hits, totals.handled, totals.skipped, totals.errors + damaged, totals.lost,
	       printed, sum, spile_ring_memory());
	return totals.errors + damaged != 0;
}
