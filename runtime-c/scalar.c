// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Aggregates that are not arrays. A handler feeds one without a call, and without a look-up of
 * its table: its data is at a constant offset in each CPU's values.
 */
#include <linux/build_bug.h>
#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <linux/stddef.h>

#include "context.h"
#include "map.h"
#include "scalar.h"
#include "stats.h"

static_assert(offsetof(struct spile_scalar, count) == offsetof(struct spile_stats, count));
static_assert(offsetof(struct spile_scalar, sum_low) == offsetof(struct spile_stats, sum.low));
static_assert(offsetof(struct spile_scalar, sum_high) == offsetof(struct spile_stats, sum.high));
static_assert(offsetof(struct spile_scalar, min) == offsetof(struct spile_stats, min));
static_assert(offsetof(struct spile_scalar, max) == offsetof(struct spile_stats, max));

void spile_scalars_init(void)
{
	unsigned int i;

	for (i = 0; i < spile_script.map_count; i++)
		if (spile_script.maps[i]->place)
			*spile_script.maps[i]->place = spile_tables[i].local;
}
