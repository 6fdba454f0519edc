/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the running kernel is the one that the script was compiled for. */
#ifndef SPILE_KERNEL_ID_H
#define SPILE_KERNEL_ID_H

#include <linux/compiler.h>

/*
 * -ENOEXEC for another release or ABI, -EKEYREJECTED for another build; one line in the kernel log.
 */
int __must_check spile_kernel_id_check(void);

#endif
