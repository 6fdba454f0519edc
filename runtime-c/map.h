/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arrays and aggregates: one table for each spile_map of the script. All memory
 * is made by SPILE_SETUP (map_init.c); map.c finds, makes and deletes elements, stats.c
 * feeds and reads aggregates, counts.c counts, iterate.c walks and sorts, kept_text.c has
 * long texts. These five compile in user space too, where tests/maps.c has its own contexts
 * and memory.
 *
 * A table of numbers or strings is used under its global's lock alone, or, if it is
 * striped, under the lock of the stripe that the element's hash is of, or under the
 * global's lock for all CPUs (SPILE_LOCK_ALL). The keys
 * of an array of aggregates are one table for all CPUs, the values lie in each
 * CPU's own memory, by the element's number: feeding an element that exists
 * writes nothing that another CPU reads but under SPILE_LOCK_ALL. So it is with numbers
 * that are counted (counts.c). Making an
 * element is possible on several CPUs at once: `making` is held for that.
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
 * When an element of a striped table is made: grows on each CPU; between CPUs as well as their
 * cycle counters agree.
 */
static inline __u64 spile_map_moment(struct spile_context *c)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	u64 now = get_cycles();

	return cpu->moment = now > cpu->moment ? now : cpu->moment + 1;
}
#else
void spile_fail_text(struct spile_context *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* This CPU's memory for aggregates. */
char *spile_map_values(struct spile_context *c);
__u64 spile_map_moment(struct spile_context *c);
#define noinline __attribute__((noinline))
#endif

/* In front of an element's keys and value. */
struct spile_element {
	unsigned int next;	/* in its bucket, or on the free list; 0: none */
	unsigned int hash;
	unsigned int older;	/* order of making; 0: none */
	unsigned int newer;
	/* odd while keys are being written; a new one for each use of the element, from 2 */
	__u64 generation;
	__u64 sequence;		/* of its making: counts up */
};

/* A string key or value: below spile_script.slot_bytes here, a longer one in kept_text.c. */
struct spile_slot {
	unsigned int length;
	unsigned int kept;		/* the longer one's number */
	char text[];
};

enum {
	SPILE_STRIPE_BITS = 6,
	SPILE_STRIPES = 1 << SPILE_STRIPE_BITS,
};

/* The elements whose hashes have the same upper bits; of a table that is not striped all. */
struct spile_stripe {
	struct spile_context *holder SPILE_CACHE_ALIGNED;	/* whose run holds it (stripe.h) */
	unsigned int count;
	/*
	 * an element that has been deleted, before those of `free`; put there under the stripe,
	 * taken without it; 0: none
	 */
	unsigned int spare;
	unsigned int oldest;
	unsigned int newest;
	/* the element deleted last; above bit 31: how often it has changed */
	__u64 free;
	__u64 sequence;
};

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
	const int *claimed;		/* striped: somebody has SPILE_LOCK_ALL, or waits for it */
	size_t stripes_bytes;		/* 0: not striped */
	unsigned int most;		/* map->entries */
	unsigned int keeps_more;	/* of an aggregate: variance or histogram too */
	/* offset in the element; of an aggregate: its key while sorted */
	unsigned int value;
	size_t elements_bytes;
	size_t buckets_bytes;
	size_t local;			/* offset in a CPU's values */
	unsigned int local_stride;
	unsigned int keys[SPILE_MAX_KEYS];	/* offsets in the element */
	__u64 seeds[SPILE_MAX_KEYS + 1];	/* random, odd */

	/* Under the global's lock; of an aggregate under `making` or SPILE_LOCK_ALL. */
	int making SPILE_CACHE_ALIGNED;
	unsigned int used;		/* elements that have ever been used */
	struct spile_stripe own;
};

extern struct spile_table *spile_tables;	/* by spile_map.index */

/* Memory of aggregates by CPU number, 0 for a CPU that cannot be; this many. */
extern char **spile_map_areas;
extern unsigned int spile_map_area_count;

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
	return table->stripes_bytes ? SPILE_STRIPES : 1;
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
 * Where a text of that length, which has been read from the slot, is. If another CPU is
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
 * The same for feeding an aggregate: created if absent; 0 and an error if it cannot be, or
 * without an error if its key has no room (kept_text.h). generation: of the element that
 * had the keys when it was looked at. _new: where spile_find_concurrently() (map_find.h)
 * has found none.
 */
struct spile_found {
	unsigned long number;
	__u64 generation;
};
struct spile_found spile_map_feed(struct spile_context *c, struct spile_table *table,
				  const union spile_key *keys);
struct spile_found spile_map_feed_new(struct spile_context *c, struct spile_table *table,
				      const union spile_key *keys, unsigned int hash);

/* Whether the keys that `any` leaves are the element's. keys 0: yes. */
bool spile_map_matches(const struct spile_table *table, const struct spile_element *element,
		       const union spile_key *keys, unsigned int any);

/* What looking at one element for it takes, in steps. */
static inline unsigned int spile_map_match_steps(const struct spile_table *table,
						 const union spile_key *keys)
{
	return keys ? 1 + table->map->keys : 1;
}

/*
 * Offsets and sizes of a new table, zeroed before. The memory for its elements, buckets
 * and, if it has any, stripes is then to be put there, zeroed, as many bytes as it says.
 * *local: its place in a CPU's values, advanced by its size.
 */
void spile_map_layout(struct spile_table *table, const struct spile_map *map, size_t *local);

/*
 * The run gets the stripe, for which it has to wait. False: its holder does not release it.
 */
bool spile_stripe_wait(struct spile_context *c, const struct spile_table *table,
		       struct spile_stripe *stripe);

#endif
