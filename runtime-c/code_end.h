/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_CODE_END_H
#define SPILE_CODE_END_H

#include <linux/compiler.h>
#include <linux/types.h>

struct spile_site;

/*
 * Whether the kernel would read past the module's code if a kprobe was registered at the site,
 * whose place is known. Process context, under spile_session.lock.
 */
bool spile_code_end_is_passed(const struct spile_site *site);

/* 0, or -EILSEQ with a WARN record: no kprobe may be registered there. */
int __must_check spile_code_end_check(const struct spile_site *site);

#endif
