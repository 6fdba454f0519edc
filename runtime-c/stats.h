/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data of an aggregate, and its arithmetic. Sums have 128 bits and sums of squares 192, so
 * that averages and variances are exact for any values and any number of them below 2^64.
 */
#ifndef SPILE_STATS_H
#define SPILE_STATS_H

#include "portable.h"
#include "script.h"

struct spile_table;

extern unsigned int spile_map_area_count;	/* map.h */

/* Numbers of 128 bits in memory that is aligned to 8. */
typedef __int128 spile_s128 __attribute__((aligned(8)));
union spile_sum {
	spile_s128 all;
	struct {
		__u64 low;
		__u64 high;
	};
};
typedef unsigned __int128 spile_u128 __attribute__((aligned(8)));

struct spile_stats {
	/* that of the element; if it differs, this data belongs to an earlier element */
	__u64 generation;
	__u64 count;
	union spile_sum sum;
	__s64 min;		/* initially the greatest number, so that every value is less */
	__s64 max;
	/*
	 * Followed by what spile_stats_kind asks for:
	 *     struct spile_squares
	 *     __u64 buckets[spile_histogram_buckets()]
	 */
};

struct spile_squares {
	spile_u128 low;		/* sum of the squares */
	__u64 high;
};

static inline unsigned int spile_stats_buckets_at(const struct spile_stats_kind *kind)
{
	return sizeof(struct spile_stats) + (kind->variance ? sizeof(struct spile_squares) : 0);
}

static inline unsigned int spile_stats_bytes(const struct spile_stats_kind *kind)
{
	return spile_stats_buckets_at(kind) + spile_histogram_buckets(kind) * sizeof(__u64);
}

/* The squares of an aggregate that has them. */
static inline struct spile_squares *spile_stats_squares(struct spile_stats *stats)
{
	return (struct spile_squares *)(stats + 1);
}

static inline __u64 *spile_stats_buckets(struct spile_stats *stats,
					 const struct spile_stats_kind *kind)
{
	return (__u64 *)((char *)stats + spile_stats_buckets_at(kind));
}

/* An aggregate without its histogram. */
struct spile_few_stats {
	struct spile_stats stats;
	struct spile_squares squares;
};

/* Makes the aggregate empty. The generation is not changed. */
void spile_stats_reset(struct spile_stats *stats, const struct spile_stats_kind *kind);

/* Resets the aggregate of a map without keys on every CPU. SPILE_LOCK_ALL. */
void spile_stats_reset_everywhere(struct spile_table *table);

/*
 * Merges all CPUs' values of an element. Number 0 is the aggregate of a map without keys; in
 * other maps it gives an empty one. Needs SPILE_LOCK_ALL. Bounded by the number of CPUs.
 */
void spile_stats_collect(const struct spile_table *table, unsigned int number,
			 struct spile_few_stats *into);

/* The same for the histogram; returns how many values there are. */
__u64 spile_stats_collect_buckets(const struct spile_table *table, unsigned int number,
				  __u64 *buckets);

/* The cost of that, in steps. */
static inline spile_ulong spile_stats_bucket_steps(const struct spile_stats_kind *kind)
{
	return (spile_ulong)spile_map_area_count * (1 + spile_histogram_buckets(kind) / 4);
}

/*
 * @count and so on. False for MIN, MAX, AVERAGE and VARIANCE of nothing, *result is 0 then.
 * SUM is the low 64 bits of the sum. VARIANCE: of a sample, the sum of squared distances from the
 * mean divided by count - 1, rounded down; of one value -1; the greatest long where it is greater.
 */
bool spile_stats_extract(const struct spile_few_stats *all, enum spile_extractor extractor,
			 spile_long *result);

/* The bucket that a value belongs to; kind is not NONE. */
unsigned int spile_histogram_index(const struct spile_stats_kind *kind, spile_long value);

#endif
