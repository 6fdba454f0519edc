/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modules that probes are in: arms sites when a module is loaded, disarms them when it is
 * unloaded, and checks that it is the build that the script was compiled for.
 */
#ifndef SPILE_MODULE_NOTIFIER_H
#define SPILE_MODULE_NOTIFIER_H

#include <linux/compiler.h>
#include <linux/types.h>

/*
 * Before SPILE_START: looks at the modules that are loaded now. -EKEYREJECTED,
 * with a WARN record, if one is another build. Under spile_session.lock.
 */
int __must_check spile_modules_check(void);
/* Whether spile_modules_check() has found the module of a target loaded. */
bool spile_modules_present(unsigned int target);
/* The module of a target; NULL if it is not loaded. Valid while spile_session.lock is held. */
struct module *spile_modules_of(unsigned int target);

struct spile_site;
/*
 * Whether the site is in a module that spile has built: code that runs at hits is no place
 * for probes. Under spile_session.lock.
 */
bool spile_modules_is_script(const struct spile_site *site);

int __must_check spile_modules_init(void);
void spile_modules_exit(void);

#endif
