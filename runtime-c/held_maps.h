/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_HELD_MAPS_H
#define SPILE_HELD_MAPS_H

#include <linux/fs.h>

struct spile_site;

/* All of these sleep, for seconds where a lock is held, and are called with spile_session.lock. */

/* Whether a process that maps the file has held the lock of its mappings for seconds. */
bool spile_maps_are_held(struct inode *inode);
/* Reports a site that was not armed because of that: -EBUSY. False: that is not why. */
bool spile_maps_report(const struct spile_site *site, int error);
/* The same, of an armed site that is to be removed: it stays for now. The log has it once. */
bool spile_maps_delay(struct inode *inode, const char *point);

#endif
