/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares code in memory with the code that a guru script was compiled for. */
#ifndef SPILE_FINGERPRINT_H
#define SPILE_FINGERPRINT_H

#include <linux/types.h>

struct module;

/*
 * Whether the code of a target's probed functions is that which the script was compiled
 * for; a WARN record names one that differs. `module` is NULL for the kernel. Sleeps; under
 * spile_session.lock, before any site of the target is armed.
 */
bool spile_fingerprints_match(unsigned int target, struct module *module);

#endif
