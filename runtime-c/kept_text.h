/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Strings of array elements that are too long for the element: stacks. Each string is stored
 * once, whichever elements have it, and stays to the end of the session, so that it can be
 * read without a lock. All memory is made by SPILE_SETUP. As map.c: any context, does not wait.
 */
#ifndef SPILE_KEPT_TEXT_H
#define SPILE_KEPT_TEXT_H

#include "portable.h"
#include "script.h"

struct spile_kept_text {
	__u32 next;			/* in its bucket; 0: none */
	__u32 hash;
	__u32 length;
	char text[];
};

struct spile_kept {
	/* Constant after load. */
	char *base;			/* text N is at base + 8 * N */
	unsigned int *buckets;		/* first text of each */
	unsigned int bucket_shift;	/* of a hash of 32 bits */
	unsigned int most;		/* in 8 bytes */
	__u64 seeds[2];			/* random, odd */

	unsigned int used;		/* in 8 bytes; only grows */
	/*
	 * without memory: keys, whose elements were not created, and values, which were
	 * truncated
	 */
	__u64 refused;
	__u64 cut;
};
extern struct spile_kept spile_kept;

/* Bytes of memory for this many bytes of strings. */
size_t spile_kept_bytes(unsigned int bytes);
/* Starts to use that memory, which is zeroed; seeds are set already. */
void spile_kept_begin(char *memory, unsigned int bytes);

/*
 * Stores a string of more than 16 bytes. Returns its number; 0 if there is no memory. Lock-free:
 * some CPU always makes progress.
 */
unsigned int spile_keep_text(struct spile_string text);

/*
 * The bytes of a string. string_bytes can be read for 0 and for any number that spile_keep_text()
 * has returned.
 */
static inline const char *spile_kept_at(unsigned int number)
{
	return ((struct spile_kept_text *)(spile_kept.base + (size_t)number * 8))->text;
}

#endif
