// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Per-CPU rings of records.
 */
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "features.h"
#include "owner.h"
#include "ring.h"
#include "session.h"

u32 spile_ring_bytes __read_mostly;
bool spile_ring_overwrite __read_mostly;
bool spile_ring_tasks __read_mostly;

static DECLARE_WAIT_QUEUE_HEAD(readers);

static_assert(sizeof(struct spile_ring_header) <= SPILE_RING_HEADER_BYTES);
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
 */
static void wake_now(struct spile_cpu *cpu)
{
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

	if (READ_ONCE(cpu->urgent))
		wake_now(cpu);
	else
		hrtimer_start(&cpu->wake_timer, ns_to_ktime(SPILE_RING_WAKE_NS),
			      HRTIMER_MODE_REL_SOFT);
}

static noinline void ask_urgently(struct spile_cpu *cpu)
{
	WRITE_ONCE(cpu->urgent, 1);
	irq_work_queue(&cpu->wake);
}

void spile_ring_call_reader(struct spile_cpu *cpu)
{
	ask_urgently(cpu);
}

/*
 * Whether `bytes` more fit in the ring. The reader's tail is trusted only if it is
 * plausible: there are never more than the ring's bytes between tail and the next record. The
 * shared tail is read only when the ring seems half full.
 */
static bool has_room(struct spile_cpu *cpu, u64 bytes)
{
	u64 at = cpu->context.record_at, tail;

	if (at - cpu->tail + bytes <= spile_ring_bytes / 2)
		return true;
	/*
	 * Acquire: the reader has loaded the records before tail before we overwrite them. Pairs
	 * with its release store of tail.
	 */
	tail = smp_load_acquire(&cpu->ring->tail);
	if (at - tail > spile_ring_bytes)
		return false;
	cpu->tail = tail;
	if (at - tail + bytes > spile_ring_bytes / 2 && !READ_ONCE(cpu->ready))
		ask_urgently(cpu);
	return at - tail + bytes <= spile_ring_bytes;
}

/*
 * Drops the oldest records until `bytes` fit; each is counted as lost. An earlier
 * reader may have overwritten the records, so their lengths are checked as a reader
 * would check them; an invalid one drops everything.
 */
static noinline bool make_room(struct spile_cpu *cpu, u64 bytes)
{
	u64 tail = cpu->ring->tail;
	u64 lost = 0;

	if (bytes > spile_ring_bytes / 2)
		return false;
	if (cpu->head - tail > spile_ring_bytes || tail % 8)
		tail = cpu->head;
	while (cpu->context.record_at - tail + bytes > spile_ring_bytes) {
		u32 offset = tail & (spile_ring_bytes - 1);
		const struct spile_record *oldest =
			(const struct spile_record *)(cpu->ring_data + offset);
		u32 size = READ_ONCE(oldest->bytes);

		if (size < 8 || size % 8 || size > spile_ring_bytes - offset ||
		    size > cpu->head - tail) {
			tail = cpu->head;
			break;
		}
		if (oldest->kind != SPILE_RECORD_PAD && oldest->kind != SPILE_RECORD_EXIT &&
		    oldest->kind != SPILE_RECORD_TASK)
			lost++;
		tail += size;
	}
	cpu->tail = tail;
	WRITE_ONCE(cpu->ring->tail, tail);
	cpu->lost_records += lost;
	WRITE_ONCE(cpu->ring->lost_records, cpu->lost_records);
	return true;
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
 * ring's end.
 */
static void set_limit(struct spile_cpu *cpu)
{
	struct spile_context *c = &cpu->context;
	u64 to_end = spile_ring_bytes - (c->record_at & (spile_ring_bytes - 1));

	/* With tasks every record comes through find_place(). */
	c->record_limit = spile_ring_tasks ?
				  0 :
				  min(c->record_at + to_end, cpu->tail + spile_ring_bytes / 2);
}

/*
 * Finds a place for a record that is beyond the limit; false if there is none. What it
 * leaves free at the ring's end becomes visible with the next record.
 */
static noinline bool find_room(struct spile_cpu *cpu, unsigned int kind, u64 size)
{
	struct spile_context *c = &cpu->context;
	u32 offset = c->record_at & (spile_ring_bytes - 1);
	u32 to_end = spile_ring_bytes - offset;
	struct spile_record *pad = (struct spile_record *)(cpu->ring_data + offset);

	if (!cpu->ring)
		return false;
	if (size <= to_end)
		to_end = 0;
	if (!has_room(cpu, size + to_end) &&
	    !(READ_ONCE(spile_ring_overwrite) && make_room(cpu, size + to_end))) {
		/*
		 * An EXIT record that finds no room is not counted as lost: the reader
		 * is woken anyway. Nor is a TASK record (put_task()).
		 */
		if (kind != SPILE_RECORD_EXIT)
			count_lost(cpu, size);
		return false;
	}
	c->record = (char *)pad;
	if (to_end) {
		pad->bytes = to_end;	/* at least 8: a pad has only these two fields */
		pad->kind = SPILE_RECORD_PAD;
		c->record = cpu->ring_data;
		c->record_at += to_end;
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
	WRITE_ONCE(cpu->ready, 0);
	/* Release: ready is stored before waiting; pairs with the acquire in is_ready(). */
	smp_store_release(&cpu->ring->waiting, 0);
	irq_work_queue(&cpu->wake);
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

	most = min(most, left > SPILE_RING_HEADER_BYTES ? left - SPILE_RING_HEADER_BYTES : 0);

	bytes = roundup_pow_of_two(clamp_t(u32, bytes, SPILE_RING_MIN, SPILE_RING_MAX));
	while (bytes > most && bytes > SPILE_RING_MIN)
		bytes /= 2;
	return bytes;
}

/*
 * No ring is visible before all are allocated: a concurrent reader must not see one
 * that is freed again.
 */
int spile_ring_setup(u32 wanted)
{
	u32 bytes = affordable_size(wanted);
	char **rings;
	int i;

	if (((u64)SPILE_RING_HEADER_BYTES + bytes) * num_possible_cpus() > spile_owner_left())
		return -EDQUOT;
	if (!spile_session_affords("output buffers", 0, SPILE_RING_HEADER_BYTES + (size_t)bytes))
		return -ENOMEM;
	rings = kcalloc(nr_cpu_ids, sizeof(*rings), GFP_KERNEL);
	if (!rings)
		return -ENOMEM;
	for_each_possible_cpu(i) {
		rings[i] = spile_session_memory(SPILE_RING_HEADER_BYTES + (unsigned long)bytes);
		if (!rings[i])
			goto err;
	}
	for_each_possible_cpu(i) {
		struct spile_cpu *cpu = per_cpu(spile_cpus, i);

		cpu->ring = (struct spile_ring_header *)rings[i];
		cpu->ring_data = rings[i] + SPILE_RING_HEADER_BYTES;
		cpu->context.record = cpu->ring_data;
	}
	kfree(rings);
	/* Release: for the rings' addresses; pairs with the acquire in rings_are_there(). */
	smp_store_release(&spile_ring_bytes, bytes);
	spile_session_charge(((size_t)SPILE_RING_HEADER_BYTES + bytes) * num_possible_cpus());
	return 0;
err:
	for_each_possible_cpu(i)
		vfree(rings[i]);
	kfree(rings);
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
		cpu->ring_data = NULL;
	}
	spile_ring_bytes = 0;
}

int spile_ring_mmap(struct file *file, struct vm_area_struct *vma)
{
	unsigned long bytes, index, at;
	struct spile_cpu *cpu;
	int error = 0;

	if (!rings_are_there())
		return -ENODEV;
	bytes = SPILE_RING_HEADER_BYTES + (unsigned long)spile_ring_bytes;
	index = vma->vm_pgoff / (bytes >> PAGE_SHIFT);
	if (vma->vm_pgoff % (bytes >> PAGE_SHIFT) || vma->vm_end - vma->vm_start != bytes ||
	    !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (index >= nr_cpu_ids || !cpu_possible(index))
		return -ENXIO;
	cpu = per_cpu(spile_cpus, index);
	/*
	 * Not remap_vmalloc_range(): it only takes memory of vmalloc_user(), which is
	 * not charged to a cgroup.
	 */
	for (at = 0; at < bytes && !error; at += PAGE_SIZE)
		error = vm_insert_page(vma, vma->vm_start + at,
				       vmalloc_to_page((char *)cpu->ring + at));
	return error;
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
	/* Acquire: pairs with the release in reader_waits(). */
	return smp_load_acquire(&cpu->ring->waiting) || READ_ONCE(cpu->ready);
}

__poll_t spile_ring_poll(struct file *file, struct poll_table_struct *table)
{
	bool waits = poll_requested_events(table) & EPOLLIN;
	bool there = rings_are_there();
	__poll_t events = 0;
	int state, i;

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
