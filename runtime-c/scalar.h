/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Aggregates that are not arrays, where handlers feed them in place (script.h,
 * spile_feed()).
 */
#ifndef SPILE_SCALAR_H
#define SPILE_SCALAR_H

/* Tells the script's code where they are. By SPILE_SETUP, after spile_maps_init(). */
void spile_scalars_init(void);

#endif
