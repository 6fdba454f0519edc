/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The runtime in user space with one script (runtime.c), for programs that hit its probes. */
#ifndef SPILE_TESTS_THREADS_H
#define SPILE_TESTS_THREADS_H

#include "kernel.h"

#include "../../abi/abi.h"
#include "../../script.h"

/* pid() of this thread's next hit. */
extern __thread spile_long shim_argument;
/* target() */
extern spile_long shim_target;

/* Allocates everything for shim_cpus and runs the begin probes. */
void shim_load_script(u32 ring_bytes);
/* Runs the begin probes once more, after shim_end_script(). */
void shim_begin_script(void);
/* Runs the end probes; no other thread may hit probes any more. */
void shim_end_script(void);
/* A hit of the script's probe with that number, on this_cpu. */
void shim_hit(unsigned int probe, unsigned long *regs);

/* Totals of all armed probes; lost: records. */
struct shim_totals {
	u64 handled, skipped, errors, lost;
};
struct shim_totals shim_totals(void);

/* A CPU's ring, for its reader; and the record that begins at a byte of it. */
struct spile_ring_header *shim_ring(unsigned int cpu);
const struct spile_record *shim_record(const struct spile_ring_header *ring, u64 at);

#endif
