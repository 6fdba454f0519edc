// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One of the runtime's two compilation units: what runs at hits, so that functions can be
 * inlined into each other. The other one is unit_session.c.
 *
 * Each file of a unit includes what it needs, keeps its names distinct from those of all
 * others, and shares only its header's declarations.
 */
#include "owner.c"

#include "condition.c"
#include "context.c"
#include "stack_left.c"
#include "entry.c"
#include "kprobe.c"
#include "kretprobe.c"
#include "return_pool.c"
#include "timer.c"
#include "tracepoint.c"
#include "perf.c"
#include "syscall.c"
#include "syscall_entry.c"
#include "follow.c"
#include "page_in.c"
#include "fault_in.c"
#include "uprobe.c"
#include "uprobe_entry.c"
#include "uretprobe.c"
#include "program_counter.c"

#include "gate.c"
#include "guard.c"
#include "actions.c"
#include "lock.c"
#include "memory.c"
#include "ring.c"
#include "record.c"

#include "kept_text.c"
#include "map.c"
#include "parts.c"
#include "stats.c"
#include "counts.c"
#include "iterate.c"
#include "scalar.c"

#include "arithmetic.c"
#include "string.c"
#include "text.c"
#include "stack.c"
#include "user_maps.c"
#include "user_stack.c"

#include "builtin_memory.c"
#include "builtin_user_stack.c"
