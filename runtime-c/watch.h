/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watchpoints (CONFIG_HAVE_HW_BREAKPOINT): what those on the kernel and on programs share. */
#ifndef SPILE_WATCH_H
#define SPILE_WATCH_H

#include <linux/types.h>

struct perf_event;
struct perf_event_attr;
struct perf_sample_data;
struct pt_regs;

/* The attributes of an event for `length` bytes, 1, 2, 4 or 8, at a multiple of the length. */
void spile_watch_describe(struct perf_event_attr *attr, unsigned long address, unsigned int length,
			  bool reads);

/*
 * Runs the handler of the event's site (its context); in the debug exception, after the
 * instruction that touched the data.
 */
void spile_watch_hit(struct perf_event *event, struct perf_sample_data *data,
		     struct pt_regs *regs);

#endif
