// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of arrays and aggregates: all of it is made by SPILE_SETUP, so for the account of
 * the cgroup of the process that reads the session.
 */
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

static int make_areas(size_t local)
{
	int i;

	spile_map_areas = kcalloc(nr_cpu_ids, sizeof(*spile_map_areas), GFP_KERNEL);
	if (!spile_map_areas)
		return -ENOMEM;
	spile_map_area_count = nr_cpu_ids;
	for_each_possible_cpu(i) {
		/* Whole pages: what kmalloc() finds for other sizes may not be aligned. */
		char *area = kvmalloc_node(PAGE_ALIGN(local), SPILE_SESSION_MEMORY, cpu_to_node(i));

		if (!area)
			return -ENOMEM;
		spile_map_areas[i] = area;
		per_cpu(spile_cpus, i)->values = area;
	}
	return 0;
}

int spile_maps_init(void)
{
	size_t shared, local, kept = 0;
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
	if (!spile_session_affords("arrays", shared, local))
		error = -ENOMEM;
	if (!error)
		error = make_kept();
	for (i = 0; i < spile_script.map_count && !error; i++)
		error = make_table(&spile_tables[i]);
	if (!error && local)
		error = make_areas(local);
	if (error) {
		spile_maps_exit();
		return error;
	}
	for (i = 0; i < spile_script.map_count; i++)
		if (!spile_script.maps[i]->keys)
			spile_stats_reset_everywhere(&spile_tables[i]);
	spile_session_charge(spile_script.map_count * sizeof(*spile_tables) + shared +
			     local * num_possible_cpus());
	return 0;
}

void spile_maps_exit(void)
{
	unsigned int i;

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
