/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of arrays and aggregates: made after the contexts, freed before them.
 */
#ifndef SPILE_MAP_INIT_H
#define SPILE_MAP_INIT_H

#include <linux/compiler.h>

int __must_check spile_maps_init(void);
void spile_maps_exit(void);

#endif
