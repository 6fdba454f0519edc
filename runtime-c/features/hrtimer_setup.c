// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/hrtimer.h>

void probe_hrtimer_setup(struct hrtimer *timer,
			 enum hrtimer_restart (*handler)(struct hrtimer *timer));
void probe_hrtimer_setup(struct hrtimer *timer,
			 enum hrtimer_restart (*handler)(struct hrtimer *timer))
{
	hrtimer_setup(timer, handler, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}
