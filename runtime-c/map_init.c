// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of arrays and aggregates: made by SPILE_SETUP, so for the account of the cgroup of the
 * process that reads the session. For what CPUs feed to elements there are reserves (parts_fill.c). A
 * CPU that comes online for the first time later gets its values then, if values for each possible
 * CPU would be much: a machine may have eight possible CPUs for each that there is.
 */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "context.h"
#include "kept_text.h"
#include "map.h"
#include "map_init.h"
#include "owner.h"
#include "parts.h"
#include "session.h"
#include "stats.h"

/*
 * Stripes, elements and buckets of a table are one allocation, in this order. An element is
 * smaller than 1 MiB and there are fewer than 2^31, so this does not overflow.
 */
static size_t table_bytes(const struct spile_table *table)
{
	return table->stripes_bytes + ALIGN(table->elements_bytes, SMP_CACHE_BYTES) +
	       table->buckets_bytes;
}

/*
 * Lays out all tables. Returns the bytes that they share; SIZE_MAX if the sum overflows.
 * local: bytes for each CPU, likewise.
 */
static size_t lay_out(size_t *local)
{
	size_t bytes = 0;
	unsigned int i;

	*local = 0;
	for (i = 0; i < spile_script.map_count; i++) {
		size_t mine = 0;

		spile_map_layout(&spile_tables[i], spile_script.maps[i], &mine);
		spile_tables[i].local = *local;
		if (check_add_overflow(*local, mine, local))
			*local = SIZE_MAX;
		if (check_add_overflow(bytes, table_bytes(&spile_tables[i]), &bytes))
			bytes = SIZE_MAX;
	}
	return bytes;
}

static int make_table(struct spile_table *table)
{
	unsigned int i;
	char *memory;

	get_random_bytes(table->seeds, sizeof(table->seeds));
	/* Multiplication by an odd number is a bijection; by an even one, keys would collide. */
	for (i = 0; i < ARRAY_SIZE(table->seeds); i++)
		table->seeds[i] |= 1;
	if (!table->map->keys)
		return 0;
	memory = spile_session_memory(table_bytes(table));
	if (!memory)
		return -ENOMEM;
	if (table->stripes_bytes)
		table->stripes = (struct spile_stripe *)memory;
	memory += table->stripes_bytes;
	table->elements = memory;
	table->buckets = (unsigned int *)(memory + ALIGN(table->elements_bytes, SMP_CACHE_BYTES));
	return 0;
}

static int make_kept(void)
{
	char *memory;
	unsigned int i;

	if (!spile_script.kept_bytes)
		return 0;
	memory = spile_session_memory(spile_kept_bytes(spile_script.kept_bytes));
	if (!memory)
		return -ENOMEM;
	get_random_bytes(spile_kept.seeds, sizeof(spile_kept.seeds));
	for (i = 0; i < ARRAY_SIZE(spile_kept.seeds); i++)
		spile_kept.seeds[i] |= 1;
	spile_kept_begin(memory, spile_script.kept_bytes);
	return 0;
}

/*
 * Values of CPUs that are not online are made at once if they are smaller than this together: the
 * kernel has few of the states by which a module follows CPUs (20 for all modules).
 */
enum { SPARE_BYTES = 1 << 20 };

static size_t area_bytes;	/* of each CPU; whole pages */
static bool areas_made;		/* SPILE_SETUP has made those of online CPUs */
static int hotplug_state;	/* 0: none */

/* Whether CPUs that are not online get their parts when they come. */
static bool follows_cpus(size_t local)
{
	size_t spare;

	/* What other sessions of a user may take is what this one has not taken. */
	if (spile_owner_left() != U64_MAX)
		return false;
	return check_mul_overflow(local, (size_t)(num_possible_cpus() - num_online_cpus()),
				  &spare) ||
	       spare > SPARE_BYTES;
}

static int report_no_area(unsigned int cpu)
{
	pr_err("%s: the arrays' %zu KiB for CPU %u cannot be allocated%s\n", THIS_MODULE->name,
	       area_bytes >> 10, cpu,
	       areas_made ? ": it cannot come online while the session runs" : "");
	return -ENOMEM;
}

/* No group; aggregates are empty. */
static void begin_area(char *area)
{
	unsigned int i, group;

	for (i = 0; i < spile_script.map_count; i++) {
		const struct spile_table *table = &spile_tables[i];

		for (group = 0; group < table->group_count; group++)
			spile_groups(table, area)[group] =
				spile_group_address(table, spile_unused_group, group);
		if (!table->map->keys)
			spile_stats_reset((struct spile_stats *)(area + table->local),
					  &table->map->stats);
	}
}

/* Makes the values of a CPU that is not running yet, or at SPILE_SETUP. */
static int make_area(unsigned int cpu)
{
	/* Who lets a CPU come is not who reads the session. */
	gfp_t flags = areas_made ? SPILE_SESSION_MEMORY & ~__GFP_ACCOUNT : SPILE_SESSION_MEMORY;
	char *area;

	if (spile_map_areas[cpu])
		return 0;
	/* Whole pages: what kmalloc() finds for other sizes may not be aligned. */
	area = kvmalloc_node(area_bytes, flags, cpu_to_node(cpu));
	if (!area)
		return report_no_area(cpu);
	begin_area(area);
	per_cpu(spile_cpus, cpu)->values = area;
	per_cpu(spile_cpus, cpu)->context.values = area;
	/* Release: its contents; pairs with the dependency in spile_map_area(). */
	smp_store_release(&spile_map_areas[cpu], area);
	return 0;
}

static int make_areas_of(const struct cpumask *cpus)
{
	int cpu, error = 0;

	for_each_cpu(cpu, cpus) {
		error = make_area(cpu);
		if (error)
			break;
	}
	return error;
}

/* Whether its elements have common parts. A number's is its value. */
static bool has_common(const struct spile_table *table)
{
	return table->group_count && !table->map->counted;
}

static size_t common_bytes(const struct spile_table *table)
{
	return has_common(table) ? table->group_count * spile_group_bytes(table) : 0;
}

/* Common parts of all elements; their memory follows the area. */
static int make_common(size_t bytes)
{
	char *area = spile_session_memory(area_bytes + bytes), *at;
	unsigned int i, group;

	if (!area)
		return -ENOMEM;
	begin_area(area);
	at = area + area_bytes;
	for (i = 0; i < spile_script.map_count; i++) {
		const struct spile_table *table = &spile_tables[i];

		for (group = 0; has_common(table) && group < table->group_count; group++) {
			spile_groups(table, area)[group] = spile_group_address(table, at, group);
			at += spile_group_bytes(table);
		}
	}
	spile_map_areas[spile_map_area_count++] = area;
	return 0;
}

static int make_areas(size_t local, size_t common)
{
	int error = -ENOSPC;

	spile_map_areas = kcalloc(nr_cpu_ids + 1, sizeof(*spile_map_areas), GFP_KERNEL);
	if (!spile_map_areas)
		return -ENOMEM;
	spile_map_area_count = nr_cpu_ids;
	area_bytes = PAGE_ALIGN(local);
	if (common && make_common(common))
		return -ENOMEM;
	if (follows_cpus(local)) {
		error = cpuhp_setup_state(CPUHP_BP_PREPARE_DYN, "spile/arrays:prepare", make_area,
					  NULL);
		if (error > 0) {
			hotplug_state = error;
			/* It calls this for CPUs that are online, but in 5.10 does not. */
			cpus_read_lock();
			error = make_areas_of(cpu_online_mask);
			cpus_read_unlock();
		} else if (error == -ENOSPC &&
			   !spile_session_fits("arrays", 0, local, num_possible_cpus())) {
			error = -ENOMEM;
		}
	}
	/* All of them at once, also if other modules have taken the kernel's states. */
	if (error == -ENOSPC)
		error = make_areas_of(cpu_possible_mask);
	areas_made = !error;
	return error;
}

static unsigned int area_count(void)
{
	unsigned int i, count = 0;

	for (i = 0; i < spile_map_area_count; i++)
		count += !!spile_map_areas[i];
	return count;
}

/* Bytes of the common parts of all tables, and in *reserves of their reserves at the beginning. */
static size_t common_and_reserves(size_t *reserves)
{
	size_t common = 0;
	unsigned int i;

	*reserves = 0;
	for (i = 0; i < spile_script.map_count; i++) {
		const struct spile_table *table = &spile_tables[i];

		if (!table->group_count)
			continue;
		if (check_add_overflow(common, common_bytes(table), &common))
			common = SIZE_MAX;
		if (check_add_overflow(*reserves, spile_reserve_bytes(table), reserves))
			*reserves = SIZE_MAX;
	}
	return common;
}

int spile_maps_init(void)
{
	size_t shared, local, common, reserves, all, kept = 0;
	unsigned int i;
	int error = 0;

	if (!spile_script.map_count)
		return 0;
	/* Page-aligned, because parts of a table are aligned to cache lines. */
	spile_tables = vzalloc(array_size(spile_script.map_count, sizeof(*spile_tables)));
	if (!spile_tables)
		return -ENOMEM;
	if (spile_script.kept_bytes)
		kept = spile_kept_bytes(spile_script.kept_bytes);
	if (check_add_overflow(lay_out(&local), kept, &shared))
		shared = SIZE_MAX;
	common = common_and_reserves(&reserves);
	if (check_add_overflow(shared, common, &all) || check_add_overflow(all, reserves, &all))
		all = SIZE_MAX;
	if (!spile_session_affords("arrays", all, local,
				   follows_cpus(local) ? num_online_cpus() : num_possible_cpus()))
		error = -ENOMEM;
	if (!error)
		error = make_kept();
	for (i = 0; i < spile_script.map_count && !error; i++)
		error = make_table(&spile_tables[i]);
	if (!error)
		error = spile_reserves_make();
	if (!error && local)
		error = make_areas(local, common);
	if (error) {
		spile_maps_exit();
		return error;
	}
	spile_session_charge(spile_script.map_count * sizeof(*spile_tables) + shared + common +
			     local * area_count());
	return 0;
}

void spile_maps_exit(void)
{
	unsigned int i;

	if (hotplug_state)
		cpuhp_remove_state_nocalls(hotplug_state);
	hotplug_state = 0;
	areas_made = false;
	spile_reserves_free();
	for (i = 0; i < spile_map_area_count; i++)
		kvfree(spile_map_areas[i]);
	spile_map_area_count = 0;
	kfree(spile_map_areas);
	spile_map_areas = NULL;
	for (i = 0; spile_tables && i < spile_script.map_count; i++)
		if (spile_tables[i].elements)
			vfree(spile_tables[i].elements - spile_tables[i].stripes_bytes);
	vfree(spile_tables);
	spile_tables = NULL;
	/* The buckets are at the start of the allocation. */
	vfree(spile_kept.buckets);
	spile_kept.buckets = NULL;
}
