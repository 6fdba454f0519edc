/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_RAISE_H
#define SPILE_RAISE_H

void spile_raise_init(void);
/* When no handler runs any more: what is still to be sent is sent. Process context. */
void spile_raise_exit(void);

#endif
