/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_HELD_MAPS_H
#define SPILE_HELD_MAPS_H

#include <linux/fs.h>

/*
 * 0, or a process that maps the file and has held the lock of its mappings for seconds;
 * negative: not known which. May sleep.
 */
int spile_maps_held_by(struct inode *inode);

#endif
