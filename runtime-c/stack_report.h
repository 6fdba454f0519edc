/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_STACK_REPORT_H
#define SPILE_STACK_REPORT_H

/* WARN records about stacks that were not whole. At the session's end; process context. */
void spile_stacks_report(void);

#endif
