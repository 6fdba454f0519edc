// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Per-CPU rings of records, in memory that all of them share.
 *
 * The memory is in chunks. A ring holds those with its unread records, and the one that it writes
 * to; when the reader has released all of a chunk, it goes back to the free ones. So a ring is as
 * large as its backlog, up to spile_ring_bytes. Handlers take chunks without a lock and without
 * allocating, whatever they have interrupted; there are always some more than are used now
 * (keep_free). A reader that polls adds what is missing.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "features.h"
#include "irq_work.h"
#include "owner.h"
#include "ring.h"
#include "session.h"

u32 spile_ring_bytes __read_mostly;
bool spile_ring_overwrite __read_mostly;
bool spile_ring_tasks __read_mostly;

static DECLARE_WAIT_QUEUE_HEAD(readers);

/* Set by spile_ring_setup(), then constant, except for what they point to. */
static u32 chunk_bytes __read_mostly;	/* a power of two */
static unsigned int chunk_most;		/* as many as fill all rings */
static char **chunks __read_mostly;	/* chunk_most of them; NULL: not allocated yet */
static unsigned long *free_chunks __read_mostly;	/* bits of those that no ring holds */
static unsigned int keep_free;		/* so many are to be free, for bursts */

static unsigned int chunk_count;	/* allocated; written under growing */
static atomic_t free_count;		/* bits set in free_chunks, or about to be */
static DEFINE_MUTEX(growing);
static u64 refused;			/* when memory was last refused; 0: never. Under growing */

static_assert(sizeof(struct spile_ring_header) <= SPILE_RING_HEADER_BYTES);
static_assert(SPILE_RING_HEADER_BYTES + sizeof(u32) * SPILE_RING_PLACES <= SPILE_RING_OWN_BYTES);
static_assert((SPILE_RING_PLACES & (SPILE_RING_PLACES - 1)) == 0);
static_assert(sizeof(struct spile_record) % 8 == 0);
/* Handlers write records inline (script.h), so layouts must agree. */
static_assert(sizeof(struct spile_record) == sizeof(struct spile_record_head));
static_assert(offsetof(struct spile_record, bytes) == offsetof(struct spile_record_head, bytes));
static_assert(offsetof(struct spile_record, kind) == offsetof(struct spile_record_head, mark));
static_assert(offsetof(struct spile_record, cpu) == offsetof(struct spile_record_head, mark) + 2);
static_assert(offsetof(struct spile_record, id) == offsetof(struct spile_record_head, id));
static_assert(offsetof(struct spile_record, probe) == offsetof(struct spile_record_head, probe));
static_assert(offsetof(struct spile_record, time) == offsetof(struct spile_record_head, time));

/*
 * Waking the reader. The first record that a waiting reader has not seen starts a timer, so that
 * it is woken for the records of a few milliseconds together and not for each record (measured:
 * 4000 instead of 400 instructions for one). The reader is woken at once for a ring that is half
 * full, and at the end of the session.
 *
 * Handlers run in NMI and under the scheduler's locks too, so they only queue an irq_work.
 *
 * If a hit in that interrupt requested the next one, the CPU would never leave them. So the first
 * record requests it, and others do not until the reader has been woken, whatever that writes into
 * `waiting`; and interrupts that wake it at once have a distance.
 */
#define WAKE_DISTANCE_NS	(250 * NSEC_PER_USEC)

static void wake_now(struct spile_cpu *cpu)
{
	WRITE_ONCE(cpu->woken, ktime_get_mono_fast_ns());
	WRITE_ONCE(cpu->urgent, 0);
	/* set before the wake-up, so that a later poll() sees it */
	WRITE_ONCE(cpu->ready, 1);
	wake_up_interruptible(&readers);
	spile_session_look_after();
}

static enum hrtimer_restart wake_in_time(struct hrtimer *timer)
{
	wake_now(container_of(timer, struct spile_cpu, wake_timer));
	return HRTIMER_NORESTART;
}

static void wake_soon(struct irq_work *work)
{
	struct spile_cpu *cpu = container_of(work, struct spile_cpu, wake);

	bool urgent = READ_ONCE(cpu->urgent);

	if (urgent && ktime_get_mono_fast_ns() - READ_ONCE(cpu->woken) >= WAKE_DISTANCE_NS)
		wake_now(cpu);
	else
		hrtimer_start(&cpu->wake_timer,
			      ns_to_ktime(urgent ? WAKE_DISTANCE_NS : SPILE_RING_WAKE_NS),
			      HRTIMER_MODE_REL_SOFT);
}

static noinline void ask_urgently(struct spile_cpu *cpu)
{
	if (READ_ONCE(cpu->urgent))
		return;
	WRITE_ONCE(cpu->urgent, 1);
	if (!spile_irq_work_queue(&cpu->wake))
		WRITE_ONCE(cpu->urgent, 0);
}

void spile_ring_call_reader(struct spile_cpu *cpu)
{
	ask_urgently(cpu);
}

/* A free chunk, which then is the caller's; -1: there is none. Any context, also NMI. */
static int take_chunk(void)
{
	/* Acquire: for the chunks' addresses; pairs with the release in add_chunk(). */
	unsigned int words = BITS_TO_LONGS(smp_load_acquire(&chunk_count)), i;

	if (atomic_read(&free_count) <= 0)
		return -1;
	for (i = 0; i < words; i++) {
		unsigned long free = READ_ONCE(free_chunks[i]);

		for (; free; free &= free - 1) {
			unsigned int chunk = i * BITS_PER_LONG + __ffs(free);

			/*
			 * A full barrier: we write after whoever gave it away has read. Pairs with
			 * the one in give_chunk().
			 */
			if (test_and_clear_bit(chunk, free_chunks)) {
				atomic_dec(&free_count);
				return chunk;
			}
		}
	}
	return -1;
}

static void give_chunk(unsigned int chunk)
{
	atomic_inc(&free_count);
	/* The reader's loads, which came before the tail that we have acquired, come before. */
	smp_mb__before_atomic();
	set_bit(chunk, free_chunks);
}

static u32 *held_at(struct spile_cpu *cpu, u64 count)
{
	return &cpu->held[count / chunk_bytes % SPILE_RING_PLACES];
}

/* What is at that byte of the ring, which is in a chunk that the ring holds. */
static char *data_at(struct spile_cpu *cpu, u64 count)
{
	return chunks[*held_at(cpu, count)] + (count & (chunk_bytes - 1));
}

/* Everything before `tail` has been read: its chunks are free. */
static void release_up_to(struct spile_cpu *cpu, u64 tail)
{
	cpu->tail = tail;
	for (; cpu->first_held < round_down(tail, chunk_bytes); cpu->first_held += chunk_bytes)
		give_chunk(*held_at(cpu, cpu->first_held));
}

/*
 * Takes note of what has been read. The reader's tail is trusted only if it is plausible: it
 * only advances, and not beyond the records that the reader could see.
 */
static void look_at_tail(struct spile_cpu *cpu)
{
	/*
	 * Acquire: the reader has loaded the records before tail before we overwrite them. Pairs
	 * with its release store of tail.
	 */
	u64 tail = smp_load_acquire(&cpu->ring->tail);

	if (tail - cpu->tail <= cpu->head - cpu->tail)
		release_up_to(cpu, tail);
}

/* Fills the rest of the chunk, so that the next record is in another one. */
static void leave_chunk(struct spile_cpu *cpu)
{
	struct spile_context *c = &cpu->context;
	struct spile_record *pad = (struct spile_record *)c->record;

	if (c->record_at == cpu->chunk_end)
		return;
	pad->bytes = cpu->chunk_end - c->record_at;	/* at least 8: a pad has only these two fields */
	pad->kind = SPILE_RECORD_PAD;
	c->record_at = cpu->chunk_end;
}

/* It becomes visible with the next record, as does a pad before it. */
static void enter_chunk(struct spile_cpu *cpu, unsigned int chunk)
{
	struct spile_context *c = &cpu->context;

	leave_chunk(cpu);
	*held_at(cpu, cpu->chunk_end) = chunk;
	WRITE_ONCE(cpu->ring->places[cpu->chunk_end / chunk_bytes % SPILE_RING_PLACES], chunk);
	c->record = chunks[chunk];
	cpu->chunk_end += chunk_bytes;
}

/* Where a record would begin: in the next chunk if it does not fit into this one. */
static u64 begin_of(const struct spile_cpu *cpu, u64 bytes)
{
	u64 at = cpu->context.record_at;

	return bytes <= cpu->chunk_end - at ? at : cpu->chunk_end;
}

/*
 * Finds a place for a record in the ring's chunks or in one more. The reader is called if the ring
 * is half full, or few chunks are free.
 */
static bool has_room(struct spile_cpu *cpu, u64 bytes)
{
	u64 at = begin_of(cpu, bytes), filled = at + bytes - cpu->tail;
	bool is_there = at != cpu->chunk_end, is_urgent;
	int chunk = -1;

	is_urgent = filled > spile_ring_bytes / 2;
	if (filled <= spile_ring_bytes && !is_there) {
		chunk = take_chunk();
		is_urgent |= atomic_read(&free_count) < (int)keep_free / 2 || chunk < 0;
	}
	if (is_urgent && !READ_ONCE(cpu->ready))
		ask_urgently(cpu);
	if (chunk >= 0)
		enter_chunk(cpu, chunk);
	return filled <= spile_ring_bytes && (is_there || chunk >= 0);
}

/*
 * Drops the oldest records until `bytes` fit; each is counted as lost. An earlier
 * reader may have overwritten the records, so their lengths are checked as a reader
 * would check them; an invalid one drops everything.
 */
static noinline bool make_room(struct spile_cpu *cpu, u64 bytes)
{
	u64 at = begin_of(cpu, bytes), tail = cpu->tail, least = 0;
	u64 lost = 0;

	if (bytes > spile_ring_bytes / 2)
		return false;
	if (at == cpu->chunk_end) {
		/* The ring may have to drop even what is in this chunk, and to use it again. */
		leave_chunk(cpu);
		WRITE_ONCE(cpu->head, at);
		xchg(&cpu->ring->head, at);
		if (atomic_read(&free_count) <= 0)
			least = min(cpu->first_held + chunk_bytes, at);
	}
	if (at + bytes > spile_ring_bytes)
		least = max(least, at + bytes - spile_ring_bytes);
	if (tail % 8)
		tail = cpu->head;
	while (tail < least) {
		u32 to_end = chunk_bytes - (tail & (chunk_bytes - 1));
		const struct spile_record *oldest =
			(const struct spile_record *)data_at(cpu, tail);
		u32 size = READ_ONCE(oldest->bytes);

		if (size < 8 || size % 8 || size > to_end || size > cpu->head - tail) {
			tail = cpu->head;
			break;
		}
		if (oldest->kind != SPILE_RECORD_PAD && oldest->kind != SPILE_RECORD_EXIT &&
		    oldest->kind != SPILE_RECORD_TASK)
			lost++;
		tail += size;
	}
	release_up_to(cpu, tail);
	WRITE_ONCE(cpu->ring->tail, tail);
	cpu->lost_records += lost;
	WRITE_ONCE(cpu->ring->lost_records, cpu->lost_records);
	return has_room(cpu, bytes);
}

/* Counts a lost record. */
static noinline void count_lost(struct spile_cpu *cpu, u64 size)
{
	const struct spile_probe *probe = cpu->context.probe;

	WRITE_ONCE(cpu->ring->lost_records, ++cpu->lost_records);
	cpu->lost_bytes += size;
	if (probe)
		local_inc(&cpu->counts[probe->index].lost);
	WRITE_ONCE(cpu->ring->lost_bytes, cpu->lost_bytes);
}

/*
 * Sets the limit up to which records can be written without checking the reader's tail or the
 * chunk's end: the reader is to be called when the ring is half full.
 */
static void set_limit(struct spile_cpu *cpu)
{
	struct spile_context *c = &cpu->context;
	u64 half = cpu->tail + spile_ring_bytes / 2;

	/* With tasks every record comes through find_place(). */
	if (spile_ring_tasks)
		c->record_limit = 0;
	else
		c->record_limit = min(cpu->chunk_end, c->record_at < half ?
							      half :
							      cpu->tail + spile_ring_bytes);
}

/* Finds a place for a record that is beyond the limit; false if there is none. */
static noinline bool find_room(struct spile_cpu *cpu, unsigned int kind, u64 size)
{
	if (!cpu->ring)
		return false;
	look_at_tail(cpu);
	if (size > chunk_bytes ||
	    (!has_room(cpu, size) &&
	     !(READ_ONCE(spile_ring_overwrite) && make_room(cpu, size)))) {
		/*
		 * An EXIT record that finds no room is not counted as lost: the reader
		 * is woken anyway. Nor is a TASK record (put_task()).
		 */
		if (kind != SPILE_RECORD_EXIT)
			count_lost(cpu, size);
		return false;
	}
	set_limit(cpu);
	return true;
}

/* A SPILE_RECORD_TASK, if the last one of this ring was of another task or name. */
static void put_task(struct spile_cpu *cpu)
{
	struct spile_context *c = &cpu->context;
	const u32 size = sizeof(struct spile_record) + 8 + SPILE_STRING_PART(TASK_COMM_LEN - 1);
	spile_long ids = (spile_long)task_tgid_nr(current) << 32 | (u32)task_pid_nr(current);
	char name[TASK_COMM_LEN];
	struct spile_record *record;
	char *at;

	/* Not get_task_comm(), which takes a lock; it always ends with a NUL. */
	memcpy(name, current->comm, sizeof(name));
	name[sizeof(name) - 1] = 0;
	if (ids == cpu->task && !strcmp(name, cpu->task_name))
		return;
	/* As an EXIT record it is not counted where there is no room: the next one tries again. */
	if (!find_room(cpu, SPILE_RECORD_EXIT, size))
		return;
	record = (struct spile_record *)c->record;
	record->kind = SPILE_RECORD_TASK;
	record->cpu = smp_processor_id();
	record->id = 0;
	record->probe = SPILE_NO_PROBE;
	record->time = ktime_get_mono_fast_ns();
	at = spile_put_long((char *)(record + 1), ids);
	at = spile_put_string(at, (struct spile_string){ name, strlen(name) });
	record->bytes = at - c->record;
	/* It becomes visible with the next record. */
	c->record_at += record->bytes;
	c->record = at;
	cpu->task = ids;
	strscpy(cpu->task_name, name, sizeof(cpu->task_name));
}

/* As find_room(), after the task if that is wanted. A lost task is tried again. */
static noinline bool find_place(struct spile_cpu *cpu, unsigned int kind, u64 size)
{
	if (spile_ring_tasks && cpu->ring)
		put_task(cpu);
	return find_room(cpu, kind, size);
}

char *spile_record_begin(struct spile_context *c, unsigned int kind, unsigned int id,
			 unsigned int bytes)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	u64 size = sizeof(struct spile_record) + ALIGN((u64)bytes, 8);
	struct spile_record *record;

	/* Before SPILE_SETUP the limit is 0: nothing fits. */
	if (unlikely(c->record_at + size > c->record_limit) && !find_place(cpu, kind, size))
		return NULL;
	record = (struct spile_record *)c->record;
	record->kind = kind;
	record->cpu = smp_processor_id();
	record->id = id;
	record->probe = c->probe ? c->probe->index : SPILE_NO_PROBE;
	record->time = ktime_get_mono_fast_ns();
	return (char *)(record + 1);
}

spile_ulong spile_record_time(void)
{
	return ktime_get_mono_fast_ns();
}

static noinline void reader_waits(struct spile_cpu *cpu)
{
	/* The reader finds the record when another CPU wakes it, or at the end. */
	if (unlikely(!spile_irq_works_run()))
		return;
	/*
	 * Before a wake-up that is under way: the reader that it wakes finds the ring empty, and
	 * stores 1 again, if it has read the record already.
	 */
	WRITE_ONCE(cpu->ring->waiting, 0);
	/* A full barrier; pairs with the store in wake_now(), on whatever CPU the timer is. */
	if (xchg(&cpu->ready, 0))
		spile_irq_work_queue(&cpu->wake);
}

void spile_record_publish(struct spile_context *c)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	struct spile_ring_header *ring = cpu->ring;

	WRITE_ONCE(cpu->head, c->record_at);
	/*
	 * A full barrier. The record's bytes are stored before head; pairs with the reader's
	 * acquire load of head. And head is stored before waiting is loaded. The reader does the
	 * opposite: it stores waiting, then poll() loads head after a barrier of its own. At
	 * least one of the two sees the other.
	 */
	xchg(&ring->head, c->record_at);
	if (unlikely(READ_ONCE(ring->waiting)))
		reader_waits(cpu);
}

void spile_record_commit(struct spile_context *c, char *end)
{
	u32 bytes = end - c->record;

	if (!end)
		return;
	((struct spile_record *)c->record)->bytes = bytes;
	c->record = end;
	c->record_at += bytes;
	spile_record_publish(c);
}

void spile_ring_text(struct spile_cpu *cpu, enum spile_record_kind kind, u32 id,
		     const char *text, unsigned int length)
{
	struct spile_context *c = &cpu->context;
	char *at = spile_record_begin(c, kind, id, SPILE_STRING_PART(length));

	spile_record_commit(c, spile_put_string(at, (struct spile_string){ text, length }));
}

void spile_ring_format_of(struct spile_cpu *cpu, enum spile_record_kind kind, u32 id,
			  const char *format, va_list arguments)
{
	unsigned int length = vscnprintf(cpu->message, spile_message_bytes(), format, arguments);

	spile_ring_text(cpu, kind, id, cpu->message, length);
}

void spile_ring_format(struct spile_cpu *cpu, enum spile_record_kind kind, u32 id,
		       const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	spile_ring_format_of(cpu, kind, id, format, arguments);
	va_end(arguments);
}

void spile_ring_error(struct spile_cpu *cpu, const char *text, unsigned int length)
{
	struct spile_context *c = &cpu->context;
	struct spile_string calls = { (const char *)cpu->called_from,
				      clamp(cpu->calls, 0, (int)SPILE_CALLS_REPORTED) *
					      sizeof(u32) };
	char *at = spile_record_begin(c, SPILE_RECORD_ERROR, c->location,
				      SPILE_STRING_PART(length) + SPILE_STRING_PART(calls.length));

	at = spile_put_string(at, (struct spile_string){ text, length });
	spile_record_commit(c, spile_put_string(at, calls));
}

void spile_ring_exit(struct spile_cpu *cpu)
{
	struct spile_context *c = &cpu->context;

	spile_record_commit(c, spile_record_begin(c, SPILE_RECORD_EXIT, 0, 0));
	ask_urgently(cpu);
}

void spile_ring_wake_all(void)
{
	wake_up_interruptible(&readers);
}

/* Whether SPILE_SETUP has allocated the rings. */
static bool rings_are_there(void)
{
	/* Acquire: for the rings' addresses; pairs with the release in spile_ring_setup(). */
	return smp_load_acquire(&spile_ring_bytes);
}

void spile_rings_publish_changes(u64 changes)
{
	int i;

	if (!rings_are_there())
		return;
	for_each_possible_cpu(i)
		/*
		 * Release: the changes come before the number; pairs with the loader's acquire
		 * load of it.
		 */
		smp_store_release(&per_cpu(spile_cpus, i)->ring->changes, changes);
}

/* The requested size, as a power of two that fits the memory of the machine. */
static u32 affordable_size(u32 wanted)
{
	u64 most = ((u64)totalram_pages() << PAGE_SHIFT) / SPILE_RING_MEMORY_SHARE /
		   num_possible_cpus();
	u64 left = spile_owner_left() / num_possible_cpus();
	u32 bytes = wanted ?: SPILE_RING_DEFAULT;

	most = min(most, left > SPILE_RING_OWN_BYTES ? left - SPILE_RING_OWN_BYTES : 0);

	bytes = roundup_pow_of_two(clamp_t(u32, bytes, SPILE_RING_MIN, SPILE_RING_MAX));
	while (bytes > most && bytes > SPILE_RING_MIN)
		bytes /= 2;
	return bytes;
}

/*
 * The size of chunks: small, as each CPU that prints holds one, but some records fit into one, and
 * a ring consists of several.
 */
static u32 size_of_chunks(u32 bytes)
{
	u64 record = sizeof(struct spile_record) + (u64)spile_script.record_bytes;
	u32 size = clamp_t(u32, bytes / SPILE_RING_CHUNKS, SPILE_RING_CHUNK_MIN,
			   SPILE_RING_CHUNK);

	size = max(size, bytes / SPILE_RING_CHUNKS_MOST);
	while (size < 4 * record && size < bytes / 4)
		size *= 2;
	while (size < record && size < bytes)
		size *= 2;
	return size;
}

/* Process context, which pays for it; under growing, or before there are rings. */
static bool add_chunk(void)
{
	char *memory;

	/* What is there for the first ones was checked at once. */
	if (chunk_count == chunk_most || spile_owner_left() < chunk_bytes ||
	    si_mem_available() / 4 < chunk_bytes >> PAGE_SHIFT)
		return false;
	memory = spile_session_memory(chunk_bytes);
	if (!memory)
		return false;
	/* Release: its contents; pairs with the acquire in page_fault(). */
	smp_store_release(&chunks[chunk_count], memory);
	/* Release: its address; pairs with the acquire in take_chunk(). */
	smp_store_release(&chunk_count, chunk_count + 1);
	give_chunk(chunk_count - 1);
	return true;
}

/* As many free chunks as there can be, up to that. Process context. */
static void add_chunks(unsigned int wanted)
{
	mutex_lock(&growing);
	while (atomic_read(&free_count) < (int)wanted && chunk_count < chunk_most) {
		/* Who polls does not try again each time. */
		if (refused && ktime_get_mono_fast_ns() - refused < NSEC_PER_SEC)
			break;
		refused = add_chunk() ? 0 : ktime_get_mono_fast_ns();
	}
	mutex_unlock(&growing);
}

void spile_ring_prepare(u32 bytes)
{
	if (bytes && rings_are_there())
		add_chunks(DIV_ROUND_UP(min(bytes, spile_ring_bytes), chunk_bytes) + 1);
}

void spile_ring_prepare_alone(void)
{
	if (spile_script.armed_prints && rings_are_there())
		add_chunks(chunk_most);
}

u64 spile_ring_memory(void)
{
	if (!rings_are_there())
		return 0;
	return (u64)SPILE_RING_OWN_BYTES * num_possible_cpus() +
	       (u64)READ_ONCE(chunk_count) * chunk_bytes;
}

static void free_rings(struct spile_ring_header **rings)
{
	unsigned int i;

	for (i = 0; rings && i < nr_cpu_ids; i++)
		vfree(rings[i]);
	kfree(rings);
	for (i = 0; chunks && i < chunk_most; i++)
		vfree(chunks[i]);
	kvfree(chunks);
	kvfree(free_chunks);
	chunks = NULL;
	free_chunks = NULL;
	chunk_count = 0;
	atomic_set(&free_count, 0);
}

/*
 * The free chunks at the start. Where armed probes print, they are enough for one CPU's ring, and
 * for a part of all others. A user whose memory is limited gets all: what other sessions of that
 * user may take is what this one has not taken.
 */
static unsigned int first_chunks(u32 bytes)
{
	unsigned int online = num_online_cpus();

	if (spile_owner_left() != U64_MAX)
		return chunk_most;
	if (!spile_script.armed_prints) {
		keep_free = min_t(unsigned int, online, SPILE_RING_SPARE);
		return min(chunk_most, keep_free);
	}
	keep_free = max(bytes / chunk_bytes, SPILE_RING_FREE * online);
	/* Each CPU that prints holds one. */
	return min(chunk_most, keep_free + online);
}

/*
 * No ring is visible before all are allocated: a concurrent reader must not see one
 * that is freed again.
 */
int spile_ring_setup(u32 wanted)
{
	u32 bytes = affordable_size(wanted);
	struct spile_ring_header **rings;
	unsigned int first, cpus = num_possible_cpus();
	int i;

	if (((u64)SPILE_RING_OWN_BYTES + bytes) * cpus > spile_owner_left())
		return -EDQUOT;
	chunk_bytes = size_of_chunks(bytes);
	chunk_most = bytes / chunk_bytes * cpus;
	first = first_chunks(bytes);
	if (!spile_session_affords("output buffers", (size_t)first * chunk_bytes,
				   SPILE_RING_OWN_BYTES, cpus))
		return -ENOMEM;
	rings = kcalloc(nr_cpu_ids, sizeof(*rings), GFP_KERNEL);
	chunks = kvcalloc(chunk_most, sizeof(*chunks), GFP_KERNEL_ACCOUNT);
	free_chunks = kvcalloc(BITS_TO_LONGS(chunk_most), sizeof(long), GFP_KERNEL_ACCOUNT);
	if (!rings || !chunks || !free_chunks)
		goto err;
	for_each_possible_cpu(i) {
		rings[i] = (struct spile_ring_header *)spile_session_memory(SPILE_RING_OWN_BYTES);
		if (!rings[i])
			goto err;
		rings[i]->chunk_bytes = chunk_bytes;
		rings[i]->chunks = chunk_most;
	}
	while (chunk_count < first)
		if (!add_chunk())
			goto err;
	for_each_possible_cpu(i) {
		struct spile_cpu *cpu = per_cpu(spile_cpus, i);

		cpu->ring = rings[i];
		/* Behind what is mapped: the loader cannot write it. */
		cpu->held = (u32 *)((char *)rings[i] + SPILE_RING_HEADER_BYTES);
	}
	kfree(rings);
	/* Release: for the rings' addresses; pairs with the acquire in rings_are_there(). */
	smp_store_release(&spile_ring_bytes, bytes);
	return 0;
err:
	free_rings(rings);
	return -ENOMEM;
}

void spile_ring_init(void)
{
	int i;

	for_each_possible_cpu(i) {
		struct spile_cpu *cpu = per_cpu(spile_cpus, i);

		cpu->context.print_mark = SPILE_RECORD_PRINT | i << 16;
		init_irq_work(&cpu->wake, wake_soon);
		spile_hrtimer_setup(&cpu->wake_timer, wake_in_time, CLOCK_MONOTONIC,
				    HRTIMER_MODE_REL_SOFT);
		cpu->ready = 1;
	}
}

/* No handler runs any more, and there are no mappings: each would hold the device open. */
void spile_ring_exit_all(void)
{
	int i;

	for_each_possible_cpu(i) {
		struct spile_cpu *cpu = per_cpu(spile_cpus, i);

		irq_work_sync(&cpu->wake);
		hrtimer_cancel(&cpu->wake_timer);
		vfree(cpu->ring);
		cpu->ring = NULL;
	}
	spile_ring_bytes = 0;
	free_rings(NULL);
}

/* A page of a chunk. The loader reads only chunks that a ring has held. */
static vm_fault_t page_fault(struct vm_fault *fault)
{
	u64 at = (u64)(fault->pgoff - nr_cpu_ids) << PAGE_SHIFT;
	char *memory;

	if (at >= (u64)chunk_most * chunk_bytes)
		return VM_FAULT_SIGBUS;
	/* Acquire: the chunk's page tables; pairs with the release in add_chunk(). */
	memory = smp_load_acquire(&chunks[at / chunk_bytes]);
	if (!memory)
		return VM_FAULT_SIGBUS;
	return spile_map_missing(fault, memory + (at & (chunk_bytes - 1)));
}

static const struct vm_operations_struct chunk_pages = {
	.fault = page_fault,
};

/* Pages are mapped when the loader reads them. There is at least one chunk. */
static int map_chunks(struct vm_area_struct *vma)
{
	if (vma->vm_end - vma->vm_start != (unsigned long)chunk_most * chunk_bytes)
		return -EINVAL;
	vma->vm_ops = &chunk_pages;
	return spile_map_first(vma, chunks[0]);
}

int spile_ring_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct spile_cpu *cpu;

	if (!rings_are_there())
		return -ENODEV;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_pgoff == nr_cpu_ids)
		return map_chunks(vma);
	if (vma->vm_end - vma->vm_start != SPILE_RING_HEADER_BYTES)
		return -EINVAL;
	if (vma->vm_pgoff > nr_cpu_ids || !cpu_possible(vma->vm_pgoff))
		return -ENXIO;
	cpu = per_cpu(spile_cpus, vma->vm_pgoff);
	/*
	 * Not remap_vmalloc_range(): it only takes memory of vmalloc_user(), which is
	 * not charged to a cgroup.
	 */
	return spile_map_first(vma, cpu->ring);
}

/*
 * The ring is empty. If the writer was interrupted between head and waiting, its wake-up was for
 * records that the reader had already read; then the reader must be woken again for the next
 * record.
 */
static bool wait_again(const struct spile_cpu *cpu)
{
	if (READ_ONCE(cpu->ring->waiting))
		return false;
	WRITE_ONCE(cpu->ring->waiting, 1);
	/* As in spile_ring_poll(): waiting is stored before head is loaded. */
	smp_mb();
	return READ_ONCE(cpu->head) != READ_ONCE(cpu->ring->tail);
}

/*
 * Whether the reader should read now: the ring is not empty, and either the wake-up is due, or
 * there will be none because the record was written before the reader set `waiting`. waits: the
 * reader is to be woken for records. The rings are allocated.
 */
static bool is_ready(const struct spile_cpu *cpu, bool waits)
{
	if (READ_ONCE(cpu->head) == READ_ONCE(cpu->ring->tail))
		return waits && wait_again(cpu);
	return READ_ONCE(cpu->ring->waiting) || READ_ONCE(cpu->ready);
}

__poll_t spile_ring_poll(struct file *file, struct poll_table_struct *table)
{
	bool waits = poll_requested_events(table) & EPOLLIN;
	bool there = rings_are_there();
	__poll_t events = 0;
	int state, i;

	if (there && atomic_read(&free_count) < (int)keep_free / 2)
		add_chunks(keep_free);
	poll_wait(file, &readers, table);
	/*
	 * The reader has stored waiting, and we are in the queue, before head is loaded. Pairs
	 * with the barrier in spile_record_commit().
	 */
	smp_mb();
	for_each_possible_cpu(i) {
		if (there && is_ready(per_cpu(spile_cpus, i), waits)) {
			events |= EPOLLIN | EPOLLRDNORM;
			break;
		}
	}
	/*
	 * In STOPPED too: otherwise a reader that missed STOPPING (stopped by SIGSTOP while
	 * another process ended the session) would wait forever, and rmmod -f for the reader.
	 */
	state = READ_ONCE(spile_session_state);
	if (state >= SPILE_STATE_STOPPING)
		events |= EPOLLPRI;
	if (state == SPILE_STATE_STOPPED)
		events |= EPOLLHUP;
	return events;
}
