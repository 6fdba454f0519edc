/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the addresses that the compiler knows to those of the running kernel.
 */
#ifndef SPILE_ATTACH_H
#define SPILE_ATTACH_H

#include "site.h"

/*
 * Run-time minus link-time addresses of the kernel. Meaningful only if the
 * script uses a kernel address (spile_script.anchor_address is not 0).
 */
unsigned long spile_attach_slide(void);

/*
 * Finds where the sites of a target are that is a loaded module (spile_site.place), all
 * by one look at its symbols. Process context, under spile_session.lock.
 */
void spile_attach_find(int target);

/*
 * Clears a kprobe and says in it where the site is: by address for the kernel,
 * by "module:symbol" and offset for a module that keeps no symbols.
 */
void spile_attach_place(struct kprobe *kprobe, const struct spile_site *site);

#endif
