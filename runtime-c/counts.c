// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Arrays of numbers that are only added to: each CPU counts its own share; the shares are merged
 * when they are read.
 *
 * Any context, NMI included. Adding is bounded by the search for the element, merging by the
 * number of CPUs.
 */
#include "counts.h"
#include "map_find.h"
#include "parts.h"

static __always_inline struct spile_share *share_of(const struct spile_table *table, char *area,
				    unsigned long number)
{
	return spile_part(table, area, number, sizeof(struct spile_share));
}

/* This CPU has no memory for a share: it adds to what all have in common. */
static void add_to_value(struct spile_context *c, struct spile_table *table,
			 struct spile_found found, spile_long delta)
{
	struct spile_element *element = spile_element(table, found.number);
	spile_long *value = spile_element_value(table, element);

	if (!spile_making_begin(c, table))
		return;
	/* If it has been dropped meanwhile, so is this addition. */
	if (element->generation == found.generation)
		*value = spile_add(*value, delta);
	spile_making_end(table);
}

/*
 * Since this CPU last added to it, the element has been reused or its shares have been merged; or
 * it has not added to it yet.
 */
static noinline void begin_share(struct spile_context *c, const struct spile_table *table,
				 struct spile_found found, spile_long delta)
{
	struct spile_share *share;

	if (!spile_part_own(c, table, found.number)) {
		add_to_value(c, spile_table_of(table->map), found, delta);
		return;
	}
	share = share_of(table, spile_map_values(c), found.number);
	share->value = delta;
	share->generation = found.generation;
}

static __always_inline void add_to_share(struct spile_context *c, const struct spile_table *table,
					 struct spile_found found, spile_long delta)
{
	struct spile_share *share = share_of(table, spile_map_values(c), found.number);

	if (spile_unlikely(share->generation != found.generation))
		begin_share(c, table, found, delta);
	else
		share->value = spile_add(share->value, delta);
}

static noinline void count_new(struct spile_context *c, struct spile_table *table,
			       union spile_key key, spile_long delta)
{
	struct spile_found found = spile_map_feed_new(c, table, &key);

	if (found.number)
		add_to_share(c, table, found, delta);
}

void spile_map_count(struct spile_context *c, const struct spile_map *map,
		     const union spile_key *keys, spile_long delta)
{
	struct spile_table *table = spile_table_of(map);
	struct spile_found found = spile_map_feed(c, table, keys);

	if (spile_likely(found.number))
		add_to_share(c, table, found, delta);
}

void spile_map_count_long(struct spile_context *c, const struct spile_map *map, spile_long number,
			  spile_long delta)
{
	spile_feed_long(c, map, number, delta, add_to_share, count_new);
}

void spile_map_count_text(struct spile_context *c, const struct spile_map *map,
			  struct spile_string text, spile_long delta)
{
	spile_feed_text(c, map, text, delta, add_to_share, count_new);
}

void spile_map_count_name(struct spile_context *c, const struct spile_map *map, const char *comm,
			  spile_long delta)
{
	spile_feed_name(c, map, comm, delta, add_to_share, count_new);
}

/*
 * Invalidates all shares by a new generation, which stays even and grows as in make_element() of
 * map.c.
 */
static void forget_shares(struct spile_element *element)
{
	WRITE_ONCE(element->generation, element->generation + 2);
}

spile_long spile_counts_merge(const struct spile_table *table, unsigned int number)
{
	struct spile_element *element = spile_element(table, number);
	spile_long *value = spile_element_value(table, element);
	bool any = false;
	unsigned int cpu;

	for (cpu = 0; cpu < spile_map_area_count; cpu++) {
		char *area = spile_map_area(cpu);
		const struct spile_share *share;

		if (!area)
			continue;
		share = share_of(table, area, number);
		if (share->generation != element->generation)
			continue;
		*value = spile_add(*value, share->value);
		any = true;
	}
	if (any)
		forget_shares(element);
	return *value;
}

void spile_counts_set(const struct spile_table *table, unsigned int number, spile_long value)
{
	struct spile_element *element = spile_element(table, number);

	*(spile_long *)spile_element_value(table, element) = value;
	forget_shares(element);
}
