/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_STACK_REPORT_H
#define SPILE_STACK_REPORT_H

/* WARN records about truncated stacks. At the end of the session; process context. */
void spile_stacks_report(void);

#endif
