// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Taking memory for what a CPU feeds to elements (parts.h).
 *
 * Any context, NMI included: no lock, and nothing is allocated.
 */
#include "parts.h"

char *spile_unused_group;

bool spile_reserve_is_low(const struct spile_reserve *reserve)
{
	__u64 made = READ_ONCE(reserve->made);

	return made < reserve->most &&
	       made - READ_ONCE(reserve->taken) <= reserve->mask / 2;
}

bool spile_reserve_has_room(const struct spile_reserve *reserve, __u64 count)
{
	/* Acquire: whoever took the places' last groups has read them; pairs with the cmpxchg(). */
	__u64 ready = reserve->made - smp_load_acquire(&reserve->taken);

	return reserve->made + count <= reserve->most && ready + count <= reserve->mask + 1;
}

void spile_reserve_add(struct spile_reserve *reserve, char *group)
{
	WRITE_ONCE(reserve->groups[reserve->made & reserve->mask], group);
	/* Release: its address and its zeros; pairs with the acquire in take_group(). */
	smp_store_release(&reserve->made, reserve->made + 1);
}

/*
 * NULL: there is none. A place of the ring gets another group only after its last one has been
 * taken: then the count has changed, and the exchange fails.
 */
static char *take_group(struct spile_reserve *reserve)
{
	__u64 taken = READ_ONCE(reserve->taken);

	/* Acquire: the group's address and its zeros; pairs with the release in spile_reserve_add(). */
	while (taken < smp_load_acquire(&reserve->made)) {
		char *group = READ_ONCE(reserve->groups[taken & reserve->mask]);
		__u64 seen = cmpxchg(&reserve->taken, taken, taken + 1);

		if (seen == taken)
			return group;
		taken = seen;
	}
	return NULL;
}

bool spile_part_own(struct spile_context *c, const struct spile_table *table,
		    unsigned long number)
{
	unsigned long group = number >> SPILE_GROUP_SHIFT;
	char **place = &spile_groups(table, spile_map_values(c))[group];
	char *memory;

	/* Only this CPU writes it. */
	if (*place != spile_group_address(table, spile_unused_group, group))
		return true;
	memory = take_group(table->reserve);
	if (spile_reserve_is_low(table->reserve))
		spile_parts_ask();
	if (!memory)
		return false;
	/* Release: pairs with spile_part() on other CPUs. */
	smp_store_release(place, spile_group_address(table, memory, group));
	return true;
}
