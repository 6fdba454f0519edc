/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Globals whose values the loader sets before the script starts. */
#ifndef SPILE_SETTING_H
#define SPILE_SETTING_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "abi/abi.h"

/*
 * SPILE_SET. Process context, no handler runs yet. EINVAL: no such setting, or a
 * piece that does not continue the one before; E2BIG: longer than MAXSTRINGLEN.
 */
int __must_check spile_setting_set(const struct spile_set *set);
/* Whether commands of system() may depend on that global. */
bool spile_setting_in_commands(const struct spile_set *set);

#endif
