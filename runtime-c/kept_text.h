/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Texts of array elements that are too long for the element: stacks. Each text is stored
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
	/* what had no room: keys, whose elements were not made, and values, which were cut */
	__u64 refused;
	__u64 cut;
};
extern struct spile_kept spile_kept;

/* Memory for this many bytes of texts. */
size_t spile_kept_bytes(unsigned int bytes);
/* In that memory, zeroed; seeds are set already. */
void spile_kept_begin(char *memory, unsigned int bytes);

/*
 * The number of the text, which is longer than 16 bytes; 0: there is no room. Fails to
 * make progress only while other CPUs do.
 */
unsigned int spile_keep_text(struct spile_string text);

/*
 * Its bytes. Of any number that spile_keep_text() has ever returned, and 0, string_bytes
 * can be read.
 */
static inline const char *spile_kept_at(unsigned int number)
{
	return ((struct spile_kept_text *)(spile_kept.base + (size_t)number * 8))->text;
}

#endif
