// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/cpuidle.h>

void probe_cpuidle_enter(void);
void probe_cpuidle_enter(void)
{
	ct_cpuidle_enter();
}
