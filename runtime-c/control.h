/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control device, which abi.h describes. */
#ifndef SPILE_CONTROL_H
#define SPILE_CONTROL_H

#include <linux/compiler.h>

int __must_check spile_control_init(void);
void spile_control_exit(void);

#endif
