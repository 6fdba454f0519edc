// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Vector registers of a probed program. The kernel does not use them while it handles the hit, so
 * they are where the program left them, unless the kernel has saved them to use them itself
 * (kernel_fpu_begin() in an interrupt, or the task was scheduled away): then TIF_NEED_FPU_LOAD is set.
 */
#include <linux/irqflags.h>
#include <linux/sched.h>
#include <linux/thread_info.h>

#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#include <asm/fpu/types.h>
#include <asm/fpu/xstate.h>
#include <asm/processor.h>

#include "builtins.h"
#include "context.h"
#include "features.h"

#define SPILE_READ_VECTOR(n) \
	case n: \
		asm volatile("movq %%xmm" #n ", %0" : "=r"(value)); \
		break

static spile_long live_vector_register(unsigned int number)
{
	unsigned long value = 0;

	switch (number) {
	SPILE_READ_VECTOR(0);
	SPILE_READ_VECTOR(1);
	SPILE_READ_VECTOR(2);
	SPILE_READ_VECTOR(3);
	SPILE_READ_VECTOR(4);
	SPILE_READ_VECTOR(5);
	SPILE_READ_VECTOR(6);
	SPILE_READ_VECTOR(7);
	SPILE_READ_VECTOR(8);
	SPILE_READ_VECTOR(9);
	SPILE_READ_VECTOR(10);
	SPILE_READ_VECTOR(11);
	SPILE_READ_VECTOR(12);
	SPILE_READ_VECTOR(13);
	SPILE_READ_VECTOR(14);
	SPILE_READ_VECTOR(15);
	}
	return value;
}

static spile_long saved_vector_register(unsigned int number)
{
	const union fpregs_state *registers = SPILE_FPU_REGISTERS(SPILE_FPU_OF(current));
	u64 value;

	/* What is in its initial state, 0, need not have been written (XSAVEOPT). */
	if (boot_cpu_has(X86_FEATURE_XSAVE) &&
	    !(registers->xsave.header.xfeatures & XFEATURE_MASK_SSE))
		return 0;
	memcpy(&value, &registers->fxsave.xmm_space[number * 4], sizeof(value));
	return value;
}

spile_long spile_fn___vector_register(struct spile_context *c, spile_long number)
{
	unsigned long flags;
	spile_long value;

	/* No interrupt may use the registers in between. */
	raw_local_irq_save(flags);
	if (test_thread_flag(TIF_NEED_FPU_LOAD))
		value = saved_vector_register(number & 15);
	else
		value = live_vector_register(number & 15);
	raw_local_irq_restore(flags);
	return value;
}
