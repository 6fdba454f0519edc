/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exceptions that pass through functions whose returns are probed, for scripts with such probes in
 * programs that may throw some (spile_script.unwinders).
 */
#ifndef SPILE_EXCEPTIONS_H
#define SPILE_EXCEPTIONS_H

#include <linux/types.h>

/* At load; and at unload, when no return is armed. */
int __must_check spile_exceptions_init(void);
void spile_exceptions_exit(void);

/* These under spile_session.lock. Before the first return is armed; what is armed stays so. */
void spile_exceptions_arm(void);
/*
 * Before the last return is removed; spile_uprobe_wait() follows. False: that would wait for
 * others, as in spile_family.detach.
 */
bool __must_check spile_exceptions_detach(void);

#endif
