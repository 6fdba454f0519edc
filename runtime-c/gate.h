/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The gate decides for each write of a guru script whether it is done and whether it is reported
 * (abi.h, struct spile_gate).
 */
#ifndef SPILE_GATE_H
#define SPILE_GATE_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "script.h"
#include "abi/abi.h"

/*
 * The kind of a write. Its place is an address, an offset in struct pt_regs, the number of an
 * argument, or a process id.
 */
enum spile_gate_place {
	SPILE_GATE_MEMORY,
	SPILE_GATE_USER_MEMORY,
	SPILE_GATE_REGISTER,
	SPILE_GATE_RETURN_VALUE,	/* a register too */
	SPILE_GATE_ARGUMENT,
	SPILE_GATE_SIGNAL,
	SPILE_GATE_PANIC,
};

/*
 * Whether a handler may write now: counts the decision, and reports the first ones. Any
 * context that a handler runs in; does not sleep or allocate; bounded by the entries of
 * the scopes.
 */
bool spile_gate_passes(struct spile_context *c, enum spile_gate_place what, u64 place, u64 before,
		       u64 after);

/* As spile_gate_write(), in the memory of the current process. */
int __must_check spile_gate_write_user(struct spile_context *c, spile_ulong address,
				       const void *from, size_t bytes);
/*
 * spile_memory_write() if the gate permits it; a write that it rejects is not an error. Any
 * context.
 */
int __must_check spile_gate_write(struct spile_context *c, spile_ulong address, const void *from,
				  size_t bytes);

/* SPILE_GATE and SPILE_GATE_STATE. Process context, without spile_session.lock. */
int __must_check spile_gate_set(const struct spile_gate *gate);
void spile_gate_state(struct spile_gate_state *state);

/* No handler runs any more. Process context. */
void spile_gate_exit(void);

#endif
