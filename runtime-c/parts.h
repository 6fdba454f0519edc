/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What CPUs feed to the elements of an array: of each element each CPU has a part. A CPU gets
 * memory for them when it uses them, in groups of elements with consecutive numbers, from a
 * reserve that all CPUs share (parts_fill.c fills it). Its values have the addresses of its groups.
 */
#ifndef SPILE_PARTS_H
#define SPILE_PARTS_H

#include "map.h"

enum { SPILE_GROUP_SHIFT = 3, SPILE_GROUP = 1 << SPILE_GROUP_SHIFT };

/* Groups that no CPU has yet: a ring of mask + 1. */
struct spile_reserve {
	char **groups;
	__u64 mask;
	__u64 most;			/* of all that are ever made */
	__u64 made;			/* written by who fills it */
	__u64 taken SPILE_CACHE_ALIGNED;
};

/* In place of a group that a CPU does not have: zeros, which nobody writes. */
extern char *spile_unused_group;

static inline size_t spile_group_bytes(const struct spile_table *table)
{
	return (size_t)table->local_stride << SPILE_GROUP_SHIFT;
}

/* The groups' addresses in a CPU's values: each is where element 0 would be. */
static __always_inline char **spile_groups(const struct spile_table *table, char *area)
{
	return (char **)(area + table->local);
}

/* What stands for a group that is at `memory`. */
static inline char *spile_group_address(const struct spile_table *table, char *memory,
					unsigned long group)
{
	return memory - group * spile_group_bytes(table);
}

/*
 * A CPU's part of an element. If it has none, the part's generation is 0, which is no element's.
 * stride: table->local_stride.
 */
static __always_inline void *spile_part(const struct spile_table *table, char *area,
					unsigned long number, size_t stride)
{
	/* What is in it depends on the address; pairs with the release in spile_part_own(). */
	return READ_ONCE(spile_groups(table, area)[number >> SPILE_GROUP_SHIFT]) + number * stride;
}

/*
 * Gives this CPU the group of that element, if it does not have it. False if the reserve is
 * empty: then the element's common part is to be fed, between spile_making_begin() and _end().
 * Any context; no loop but for attempts that fail because another CPU's has succeeded.
 */
bool spile_part_own(struct spile_context *c, const struct spile_table *table,
		    unsigned long number);

/* The area of the common parts of aggregates. */
static inline char *spile_common_area(void)
{
	return spile_map_area(spile_map_area_count - 1);
}

/* The reserve is to be filled: less than half of it is there. */
bool spile_reserve_is_low(const struct spile_reserve *reserve);
/* So many more may be added. */
bool spile_reserve_has_room(const struct spile_reserve *reserve, __u64 count);
/* Adds zeroed memory for a group, for which there is room. Not by two at the same time. */
void spile_reserve_add(struct spile_reserve *reserve, char *group);

/* A reserve is low: asks for more, in process context. Any context. */
void spile_parts_ask(void);

#endif
