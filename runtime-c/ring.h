/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The per-CPU rings (abi.h, struct spile_ring_header): written by the owner of
 * a CPU's context, without locks, in any context; read by the loader through a
 * shared mapping. The loader may write anything there, at any time: nothing is
 * read back but tail, which is checked, and waiting; and in records that are to be dropped their
 * lengths, which are checked too.
 */
#ifndef SPILE_RING_H
#define SPILE_RING_H

#include <linux/fs.h>
#include <linux/poll.h>

#include "context.h"

enum {
	SPILE_RING_HEADER_BYTES = PAGE_SIZE,
	SPILE_RING_OWN_BYTES = 2 * PAGE_SIZE, /* of a CPU: the header, and behind it what it holds */
	SPILE_RING_MIN = 64 << 10,
	SPILE_RING_DEFAULT = 4 << 20,
	SPILE_RING_MAX = 1 << 30,
	SPILE_RING_CHUNK = 64 << 10,	/* bytes of a chunk; fewer where rings are small, */
	SPILE_RING_CHUNK_MIN = PAGE_SIZE,
	SPILE_RING_CHUNKS = 8,		/* so that each has so many; */
	/* more where rings are large, or records */
	SPILE_RING_CHUNKS_MOST = SPILE_RING_PLACES / 2,
	SPILE_RING_FREE = 4,		/* free chunks for each CPU, if that is more than a ring's */
	SPILE_RING_SPARE = 4,		/* free chunks for warnings where no armed probe prints */
	/* a reader that waits is woken this long after the first record */
	SPILE_RING_WAKE_NS = 10000000,
	SPILE_RING_MEMORY_SHARE = 4,	/* all rings together take at most 1/4 of the memory */
};

/*
 * There is no reader, and full rings drop the oldest records. Handlers only check this
 * when there is no room.
 */
extern bool spile_ring_overwrite;
/* Before records of another task, a SPILE_RECORD_TASK. Set before the first handler runs. */
extern bool spile_ring_tasks;
extern u32 spile_ring_bytes;		/* of each ring's data at most; 0 before SPILE_SETUP */

/* Allocates the rings; bytes as in struct spile_setup. Process context. */
int __must_check spile_ring_setup(u32 bytes);
void spile_ring_exit_all(void);
void spile_ring_init(void);

/*
 * Chunks for handlers that run soon and print so many bytes. Where memory is short there are
 * fewer. Process context.
 */
void spile_ring_prepare(u32 bytes);
/* All chunks, for a session that goes on without a loader that would add them. Process context. */
void spile_ring_prepare_alone(void);
/* Bytes that the rings take now. */
u64 spile_ring_memory(void);

/* Record with one string. */
void spile_ring_text(struct spile_cpu *cpu, enum spile_record_kind kind, u32 id,
		     const char *text, unsigned int length);
/*
 * The same with a formatted text, made in the CPU's message buffer and truncated to
 * spile_message_bytes().
 */
__printf(4, 5) void spile_ring_format(struct spile_cpu *cpu, enum spile_record_kind kind, u32 id,
				      const char *format, ...);
__printf(4, 0) void spile_ring_format_of(struct spile_cpu *cpu, enum spile_record_kind kind, u32 id,
					 const char *format, va_list arguments);
/* Writes the error of the CPU's run: this text, its place, and the call chain. */
void spile_ring_error(struct spile_cpu *cpu, const char *text, unsigned int length);
/* Writes SPILE_RECORD_EXIT, and wakes the reader even if there was no room for it. */
void spile_ring_exit(struct spile_cpu *cpu);

/* Wakes the reader for something other than records. Owner of the context. */
void spile_ring_call_reader(struct spile_cpu *cpu);

int spile_ring_mmap(struct file *file, struct vm_area_struct *vma);
__poll_t spile_ring_poll(struct file *file, struct poll_table_struct *table);
void spile_ring_wake_all(void);

/* Sets spile_ring_header.changes of all rings. Before spile_ring_exit_all(). */
void spile_rings_publish_changes(u64 changes);

#endif
