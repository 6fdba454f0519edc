/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code in memory against the code that a guru script was compiled with. */
#ifndef SPILE_IMPRINT_H
#define SPILE_IMPRINT_H

#include <linux/types.h>

struct module;

/*
 * Whether the functions of a target that probes are in look as they did; tells by
 * a record if one does not. `module` is 0 for the kernel. Sleeps; under
 * spile_session.lock, before any site of the target is armed.
 */
bool spile_imprints_hold(unsigned int target, struct module *module);

#endif
