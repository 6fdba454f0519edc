/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of arrays and aggregates: made after the contexts, freed before them.
 */
#ifndef SPILE_MAP_INIT_H
#define SPILE_MAP_INIT_H

#include <linux/compiler.h>
#include <linux/types.h>

struct spile_table;

int __must_check spile_maps_init(void);
void spile_maps_exit(void);

/* parts_fill.c: the reserves of all tables, and bytes of one at the beginning. */
int __must_check spile_reserves_make(void);
void spile_reserves_free(void);
size_t spile_reserve_bytes(const struct spile_table *table);

#endif
