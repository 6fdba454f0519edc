// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/sched.h>
#include <asm/fpu/types.h>

union fpregs_state *probe_fpu_fpstate(struct fpu *fpu);
union fpregs_state *probe_fpu_fpstate(struct fpu *fpu)
{
	return &fpu->fpstate->regs;
}
