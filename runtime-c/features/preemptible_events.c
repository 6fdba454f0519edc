// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/tracepoint.h>

#ifndef DECLARE_TRACE_SYSCALL
#error "tracepoints of system calls are declared as all others are"
#endif
