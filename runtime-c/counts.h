/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arrays whose numbers each CPU counts by itself (spile_map.counted). The keys are one
 * table for all CPUs; the sum that a CPU has added to an element since the shares were last
 * merged lies in its own memory, by the element's number. The element's own value is the
 * rest: the value that was set, and the merged sums.
 */
#ifndef SPILE_COUNTS_H
#define SPILE_COUNTS_H

#include "map.h"

struct spile_share {
	/* of the element that it belongs to; another one: there is nothing here */
	__u64 generation;
	spile_long value;
};

/*
 * Adds all CPUs' shares of an element to its value, and returns that. Whoever calls it has the
 * array for itself: SPILE_LOCK_ALL, or nothing is armed. Bounded by the CPUs.
 */
spile_long spile_counts_merge(const struct spile_table *table, unsigned int number);

/* Sets the value and forgets all shares. As above. */
void spile_counts_set(const struct spile_table *table, unsigned int number, spile_long value);

#endif
