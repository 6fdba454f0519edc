/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arrays of numbers that are counted on each CPU (spile_map.counted). All CPUs share one table
 * of keys. What a CPU has added to an element since shares were last merged is in its own
 * memory, indexed by the element's number. The element's value has the rest: the value that was
 * set, and the merged shares.
 */
#ifndef SPILE_COUNTS_H
#define SPILE_COUNTS_H

#include "map.h"

struct spile_share {
	/* that of the element; if it differs, this share belongs to an earlier element */
	__u64 generation;
	spile_long value;
};

/*
 * Adds all CPUs' shares of an element to its value, and returns the value. The caller holds
 * SPILE_LOCK_ALL, or nothing is armed. Bounded by the number of CPUs.
 */
spile_long spile_counts_merge(const struct spile_table *table, unsigned int number);

/* Sets the value and discards all shares. Context as above. */
void spile_counts_set(const struct spile_table *table, unsigned int number, spile_long value);

#endif
