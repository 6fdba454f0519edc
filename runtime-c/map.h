/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arrays and aggregates: one table for each spile_map of the script. Tables are made by
 * SPILE_SETUP (map_init.c); map.c finds, makes and deletes elements, stats.c feeds and reads
 * aggregates, counts.c counts, parts.c gives CPUs memory for these two, iterate.c walks and
 * sorts, kept_text.c has long strings. These six compile in user space too, where tests/maps.c
 * has its own contexts and memory.
 *
 * A table of numbers or strings is protected by its global's lock. A striped table is protected
 * by the lock of the stripe to which the element's hash belongs, or by the global's lock for all
 * CPUs (SPILE_LOCK_ALL). An array of aggregates has one table of keys for all CPUs. Its values
 * are in per-CPU memory (parts.h), found by the element's number, so feeding an existing element
 * writes only what other CPUs read under SPILE_LOCK_ALL. The same holds for counted numbers
 * (counts.c). Several CPUs may create elements at the same time; `making` serialises them.
 */
#ifndef SPILE_MAP_H
#define SPILE_MAP_H

#include "kept_text.h"
#include "portable.h"
#include "script.h"

#ifdef __KERNEL__
#include <linux/timex.h>

#include "context.h"
#include "guard.h"

static inline char *spile_map_values(struct spile_context *c)
{
	return spile_cpu_of(c)->values;
}

/*
 * The sequence number of a new element of a striped table. It grows on each CPU; between CPUs it
 * is as accurate as their cycle counters are synchronised.
 */
static inline __u64 spile_map_moment(struct spile_context *c)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	u64 now = get_cycles();

	return cpu->moment = now > cpu->moment ? now : cpu->moment + 1;
}

/* Adds to the time that the run has waited for others, ns, and returns it. */
static inline __u64 spile_map_waited(struct spile_context *c, __u64 time)
{
	c->stale |= SPILE_STALE_LONG;
	return spile_cpu_of(c)->waited.time += time;
}
#else
void spile_fail_text(struct spile_context *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* This CPU's memory for aggregates. */
char *spile_map_values(struct spile_context *c);
__u64 spile_map_moment(struct spile_context *c);
__u64 spile_map_waited(struct spile_context *c, __u64 time);
#define noinline __attribute__((noinline))
#endif

/*
 * In spile_table.used: a CPU has taken a run of unused elements, of which those that it does not
 * need are not on a free list yet.
 */
#define SPILE_TAKING (1ull << 32)

/* The header of an element; keys and value follow it. */
struct spile_element {
	unsigned int next;	/* in its bucket, or on the free list; 0: none */
	unsigned int hash;
	unsigned int older;	/* the one created before; 0: none */
	unsigned int newer;
	/* odd while keys are being written; a new number for each use of the element, from 2 */
	__u64 generation;
	__u64 sequence;		/* order of creation */
};

/*
 * A string key or value. It is stored here if it is shorter than spile_script.slot_bytes, else
 * in kept_text.c.
 */
struct spile_slot {
	unsigned int length;
	unsigned int kept;		/* number of the stored string */
	char text[];
};

enum {
	SPILE_STRIPE_BITS = 6,
	SPILE_STRIPES = 1 << SPILE_STRIPE_BITS,
	/* Fewer if it wraps: who drops the oldest element looks at all of them. */
	SPILE_WRAP_STRIPE_BITS = 4,
	SPILE_LINE_BYTES = 64,		/* of a cache line */
	SPILE_LINE_BUCKET_BITS = 4,	/* buckets in one */
};

/*
 * The elements whose hashes have the same upper bits; all elements of a table that is not
 * striped.
 */
struct spile_stripe {
	struct spile_context *holder SPILE_CACHE_ALIGNED;	/* whose run holds it (stripe.h) */
	unsigned int count;
	/*
	 * a deleted element, taken before those of `free`; set with the stripe held, taken
	 * without it; 0: none
	 */
	unsigned int spare;
	unsigned int oldest;
	unsigned int newest;
	/* first element of the free list; upper half: number of changes, against ABA */
	__u64 free;
	__u64 sequence;
	/* Of an array that wraps: set while a run holds the stripe and may create an element. */
	unsigned int reserves;
	unsigned int reserved;		/* the elements that it would use, linked by next; or 0 */
};

struct spile_reserve;

struct spile_table {
	/* Constant after load, read by every CPU. Elements are numbered from 1. */
	const struct spile_map *map;
	char *elements;			/* element E at elements + E * stride */
	unsigned int *buckets;		/* first element of each */
	unsigned int bucket_shift;	/* of a hash of 32 bits */
	unsigned int stride;
	unsigned int single_long;	/* the key is one long, at sizeof(struct spile_element) */
	unsigned int single_text;	/* or one string, there */
	unsigned int wraps;		/* map->wrap */
	unsigned int stripe_shift;	/* of a hash of 32 bits; 32: one stripe */
	struct spile_stripe *stripes;	/* &own, or stripes_bytes */
	const int *claimed;		/* striped: SPILE_LOCK_ALL is held or waited for */
	size_t stripes_bytes;		/* 0: not striped */
	unsigned int stripe_count;	/* 1 then */
	unsigned int most;		/* map->entries */
	/*
	 * Striped: elements whose numbers differ in these bits only have cache lines of their own,
	 * and are for one stripe as long as others have free ones.
	 */
	unsigned int run_mask;
	unsigned int keeps_more;	/* of an aggregate: variance or histogram too */
	/* offset in the element; of an aggregate: its key while sorted */
	unsigned int value;
	size_t elements_bytes;
	size_t buckets_bytes;
	/* offset in a CPU's values: with keys of its groups' addresses (parts.h) */
	size_t local;
	unsigned int local_stride;	/* of the parts that CPUs have; 0: none */
	unsigned int group_count;	/* of parts; 0 without keys */
	struct spile_reserve *reserve;
	unsigned int keys[SPILE_MAX_KEYS];	/* offsets in the element */
	__u64 seeds[SPILE_MAX_KEYS + 1];	/* random, odd */

	/* Under the global's lock; of an aggregate under `making` or SPILE_LOCK_ALL. */
	int making SPILE_CACHE_ALIGNED;
	/* elements that have ever been used; striped: or are on free lists (take_run()) */
	__u64 used;
	struct spile_stripe own;
};

extern struct spile_table *spile_tables;	/* by spile_map.index */

/*
 * Values by CPU number, NULL for a CPU that has none (it has not been online), and the number of
 * entries. If there are arrays of aggregates, the last entry is that of their common parts.
 */
extern char **spile_map_areas;
extern unsigned int spile_map_area_count;

/* A CPU's memory; it may come during the session. */
static inline char *spile_map_area(unsigned int cpu)
{
	/* What is in it depends on the address; pairs with the release in make_area(). */
	return READ_ONCE(spile_map_areas[cpu]);
}

static inline struct spile_table *spile_table_of(const struct spile_map *map)
{
	return &spile_tables[map->index];
}

static inline struct spile_stripe *spile_stripe_of(const struct spile_table *table,
						   unsigned int hash)
{
	return &table->stripes[(__u64)hash >> table->stripe_shift];
}

static inline unsigned int spile_stripe_count(const struct spile_table *table)
{
	return table->stripe_count;
}

/* Elements that there are. */
static inline unsigned int spile_table_count(const struct spile_table *table)
{
	unsigned int count = 0, i;

	for (i = 0; i < spile_stripe_count(table); i++)
		count += table->stripes[i].count;
	return count;
}

static inline struct spile_element *spile_element(const struct spile_table *table,
						  unsigned int number)
{
	return (struct spile_element *)(table->elements + (size_t)number * table->stride);
}

static inline void *spile_element_key(const struct spile_table *table,
				      const struct spile_element *element, unsigned int key)
{
	return (char *)element + table->keys[key];
}

static inline void *spile_element_value(const struct spile_table *table,
					const struct spile_element *element)
{
	return (char *)element + table->value;
}

/*
 * Where a string of that length, which has been read from the slot, is. If another CPU is
 * replacing it, the text there is arbitrary, but can be read.
 */
static inline const char *spile_slot_text(const struct spile_slot *slot, unsigned int length)
{
	return spile_likely(length < spile_script.slot_bytes) ?
		       slot->text :
		       spile_kept_at(READ_ONCE(slot->kept));
}

static inline struct spile_string spile_slot_string(const struct spile_slot *slot)
{
	return (struct spile_string){ spile_slot_text(slot, slot->length), slot->length };
}

/* Bytes of a string slot in an element. */
static inline unsigned int spile_slot_bytes(void)
{
	return (sizeof(struct spile_slot) + spile_script.slot_bytes + 7) & ~7u;
}

/* The element with these keys, 0 if there is none. Bounded by the elements of one bucket. */
unsigned int spile_map_find(const struct spile_table *table, const union spile_key *keys);

/*
 * The same for feeding an aggregate: the element is created if absent. Number 0 with an error if
 * it cannot be created, without an error if there is no memory for a long key (kept_text.h).
 * generation: that of the element when its keys were compared. spile_map_feed_new() is for
 * callers for which spile_find_concurrently() (map_find.h) has found no element.
 */
struct spile_found {
	unsigned long number;
	__u64 generation;
};
struct spile_found spile_map_feed(struct spile_context *c, struct spile_table *table,
				  const union spile_key *keys);
struct spile_found spile_map_feed_new(struct spile_context *c, struct spile_table *table,
				      const union spile_key *keys);

/*
 * Excludes others that make elements, or feed common parts. Waits for them for a bounded time;
 * false, with an error: in vain.
 */
bool spile_making_begin(struct spile_context *c, struct spile_table *table);
void spile_making_end(struct spile_table *table);

/*
 * Whether the element has these keys; keys whose bit is set in `any` are not compared. True if
 * keys is NULL.
 */
bool spile_map_matches(const struct spile_table *table, const struct spile_element *element,
		       const union spile_key *keys, unsigned int any);

/* The cost of spile_map_matches(), in steps. */
static inline unsigned int spile_map_match_steps(const struct spile_table *table,
						 const union spile_key *keys)
{
	return keys ? 1 + table->map->keys : 1;
}

/*
 * Computes offsets and sizes of a new, zeroed table. The caller then sets its pointers to zeroed
 * memory of these sizes: elements, buckets and, if it has any, stripes. *local is the table's
 * offset in a CPU's values, and is advanced by its size there.
 */
void spile_map_layout(struct spile_table *table, const struct spile_map *map, size_t *local);

/*
 * Waits for the stripe and takes it. another: as spile_stripe_try_another(). False if its holder
 * does not release it in time.
 */
bool spile_stripe_wait(struct spile_context *c, const struct spile_table *table,
		       struct spile_stripe *stripe, bool another);

/*
 * Takes all stripes, as SPILE_LOCK_ALL, for a run that holds none of them. False if their holders
 * do not release them in time.
 */
bool spile_stripes_lock(struct spile_context *c, const struct spile_table *table);
void spile_stripes_unlock(const struct spile_table *table);

#endif
