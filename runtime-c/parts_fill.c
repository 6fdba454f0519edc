// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Filling the reserves from which CPUs take memory for what they feed to elements (parts.h): at
 * SPILE_SETUP, for the account of the process that reads the session, and later by a work item, when
 * half of a reserve is used, also where nobody reads the session.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "irq_work.h"
#include "map.h"
#include "map_init.h"
#include "owner.h"
#include "parts.h"
#include "script.h"
#include "session.h"

enum {
	RESERVE_SHARE = 8,		/* of the groups of a CPU that has all */
	RESERVE_OF_CPU = 2,		/* groups, if that is more */
	BLOCK_BYTES = 64 << 10,		/* allocated at once, or one group; */
	BLOCK_SHARE = 4,		/* at most this share of the groups */
};

/* Memory for groups. */
struct parts_block {
	struct parts_block *next;
	char *groups;
};

static struct parts_block *blocks;	/* written by who fills reserves */
static struct irq_work request_parts;
static atomic_t parts_requested;	/* a request has not been served yet */

static void fill_reserves(struct work_struct *unused);
static DECLARE_DELAYED_WORK(filling_reserves, fill_reserves);

/* Handlers run in contexts in which a work item cannot be queued. */
static void begin_filling(struct irq_work *unused)
{
	schedule_delayed_work(&filling_reserves, 0);
}

void spile_parts_ask(void)
{
	if (!atomic_read(&parts_requested) && !atomic_xchg(&parts_requested, 1) &&
	    !spile_irq_work_queue(&request_parts))
		atomic_set(&parts_requested, 0);
}

/* Fewer where the last groups of all are made. */
static size_t block_groups(const struct spile_table *table)
{
	const struct spile_reserve *reserve = table->reserve;
	u64 most = table->group_count / BLOCK_SHARE;

	if (reserve)
		most = min(most, reserve->most - reserve->made);
	return clamp_t(u64, BLOCK_BYTES / spile_group_bytes(table), 1, max_t(u64, most, 1));
}

/* Adds a block of groups to the reserve. flags: for which account. */
static bool add_block(struct spile_table *table, gfp_t flags)
{
	size_t groups = block_groups(table), i;
	size_t bytes = PAGE_ALIGN(groups * spile_group_bytes(table));
	struct parts_block *block = kzalloc(sizeof(*block), flags);

	if (!block)
		return false;
	/* Whole pages: other sizes take twice as much of kmalloc(). */
	block->groups = __vmalloc(bytes, flags);
	if (!block->groups) {
		kfree(block);
		return false;
	}
	block->next = blocks;
	blocks = block;
	WRITE_ONCE(spile_session.parts_bytes, spile_session.parts_bytes + bytes);
	for (i = 0; i < groups; i++)
		spile_reserve_add(table->reserve,
				  block->groups + i * spile_group_bytes(table));
	return true;
}

/*
 * Whether a block may be added while the session runs: a sixteenth of the machine's memory is left to
 * others. Sessions of users with limits do not grow: what other sessions of a user may take is what
 * this one has not taken.
 */
static bool may_add_block(const struct spile_table *table)
{
	unsigned long pages = (BLOCK_BYTES + spile_group_bytes(table)) >> PAGE_SHIFT;

	return !spile_owner_has_limit() && si_mem_available() > totalram_pages() / 16 + pages;
}

/* False if there is no memory. */
static bool fill_reserve(struct spile_table *table, gfp_t flags)
{
	if (!spile_reserve_is_low(table->reserve))
		return true;
	while (spile_reserve_has_room(table->reserve, block_groups(table)))
		if (!may_add_block(table) || !add_block(table, flags))
			return false;
	return true;
}

static void fill_reserves(struct work_struct *unused)
{
	bool all = true;
	unsigned int i;

	/* Before the reserves are looked at: what is taken after that asks again. */
	atomic_xchg(&parts_requested, 0);
	for (i = 0; i < spile_script.map_count; i++)
		if (spile_tables[i].group_count)
			all &= fill_reserve(&spile_tables[i],
					    SPILE_SESSION_MEMORY & ~__GFP_ACCOUNT);
	if (all)
		return;
	/* Those who find it empty do not ask until then, or never where it does not grow. */
	atomic_set(&parts_requested, 1);
	if (!spile_owner_has_limit())
		schedule_delayed_work(&filling_reserves, HZ);
}

/* As many groups as are to be ready; a power of two. */
static size_t reserve_size(const struct spile_table *table)
{
	size_t wanted = max_t(size_t, table->group_count / RESERVE_SHARE,
			      RESERVE_OF_CPU * (size_t)num_online_cpus());

	return roundup_pow_of_two(max_t(size_t, wanted, 2 * block_groups(table)));
}

size_t spile_reserve_bytes(const struct spile_table *table)
{
	return reserve_size(table) * (spile_group_bytes(table) + sizeof(char *));
}

static int make_reserve(struct spile_table *table)
{
	size_t count = reserve_size(table);
	struct spile_reserve *reserve;

	reserve = kzalloc(sizeof(*reserve), GFP_KERNEL_ACCOUNT);
	if (!reserve)
		return -ENOMEM;
	table->reserve = reserve;
	reserve->groups = kvcalloc(count, sizeof(*reserve->groups), GFP_KERNEL_ACCOUNT);
	if (!reserve->groups)
		return -ENOMEM;
	spile_session_charge(sizeof(*reserve) + count * sizeof(*reserve->groups));
	reserve->mask = count - 1;
	reserve->most = (u64)table->group_count * num_possible_cpus();
	while (spile_reserve_has_room(reserve, block_groups(table)))
		if (!add_block(table, SPILE_SESSION_MEMORY))
			return -ENOMEM;
	return 0;
}

int spile_reserves_make(void)
{
	size_t bytes = 0;
	unsigned int i;
	int error = 0;

	init_irq_work(&request_parts, begin_filling);
	atomic_set(&parts_requested, 0);
	for (i = 0; i < spile_script.map_count; i++)
		if (spile_tables[i].group_count)
			bytes = max(bytes, spile_group_bytes(&spile_tables[i]));
	if (!bytes)
		return 0;
	spile_unused_group = kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!spile_unused_group)
		return -ENOMEM;
	for (i = 0; i < spile_script.map_count && !error; i++)
		if (spile_tables[i].group_count)
			error = make_reserve(&spile_tables[i]);
	return error;
}

void spile_reserves_free(void)
{
	unsigned int i;

	if (spile_unused_group) {
		irq_work_sync(&request_parts);
		cancel_delayed_work_sync(&filling_reserves);
	}
	for (i = 0; spile_tables && i < spile_script.map_count; i++) {
		if (!spile_tables[i].reserve)
			continue;
		kvfree(spile_tables[i].reserve->groups);
		kfree(spile_tables[i].reserve);
	}
	while (blocks) {
		struct parts_block *next = blocks->next;

		vfree(blocks->groups);
		kfree(blocks);
		blocks = next;
	}
	spile_session.parts_bytes = 0;
	kvfree(spile_unused_group);
	spile_unused_group = NULL;
}
