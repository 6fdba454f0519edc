/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_RAISE_H
#define SPILE_RAISE_H

#include <linux/irq_work.h>
#include <linux/types.h>

/* The signal to be sent, on each CPU. */
struct spile_raised {
	struct irq_work work;
	/* holds a reference; NULL: nothing to send; written by the CPU itself */
	struct pid *process;
	int signal;
	u64 sent;	/* when, last; in ns of the monotonic clock */
};

void spile_raise_init(void);
/* Sends pending signals, when no handler runs any more. Process context. */
void spile_raise_exit(void);

#endif
