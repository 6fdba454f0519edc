/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Aggregates that are not arrays, where handlers feed them in place (script.h,
 * spile_feed()).
 */
#ifndef SPILE_SCALAR_H
#define SPILE_SCALAR_H

/* Stores their offsets for the script's code. Called at load, after spile_maps_init(). */
void spile_scalars_init(void);

#endif
