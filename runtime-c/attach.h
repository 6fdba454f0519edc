/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts link-time addresses to those of the running kernel. */
#ifndef SPILE_ATTACH_H
#define SPILE_ATTACH_H

#include "site.h"

/*
 * Run-time minus link-time addresses of the kernel. Meaningful only if the
 * script uses a kernel address (spile_script.anchor_address is not 0).
 */
unsigned long spile_attach_slide(void);

/*
 * Finds the addresses of a target's sites in its loaded module (spile_site.place), in
 * one pass over the module's symbols. Process context, under spile_session.lock.
 */
void spile_attach_find(int target);

/*
 * Clears a kprobe and sets the site's place in it: an address for the kernel,
 * "module:symbol" and an offset for a module whose symbols are not in memory.
 */
void spile_attach_place(struct kprobe *kprobe, const struct spile_site *site);

#endif
