// SPDX-License-Identifier: GPL-2.0-or-later
/* Builtins about the probed registers: one by name, a function's arguments, all of them. */
#include <linux/kernel.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>
#include <asm/syscall.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "gate.h"
#include "guard.h"
#include "hit_address.h"
#include "memory.h"
#include "ring.h"

/* The current task's user registers, for uaddr() and the like; 0 for a kernel thread. */
static struct pt_regs *user_registers(void)
{
	return current->mm ? task_pt_regs(current) : NULL;
}

spile_long spile_fn___task_regs(struct spile_context *c)
{
	return (unsigned long)user_registers();
}

spile_long spile_fn_registers_valid(struct spile_context *c)
{
	return spile_registers(c) != NULL;
}

spile_long spile_fn_addr(struct spile_context *c)
{
	struct pt_regs *regs = spile_registers(c);

	return regs ? spile_hit_address(c, regs) : 0;
}

spile_long spile_fn_uaddr(struct spile_context *c)
{
	struct pt_regs *regs = spile_registers(c);

	if (!regs || !user_mode(regs))
		regs = user_registers();
	return regs ? instruction_pointer(regs) : 0;
}

spile_long spile_fn_returnval(struct spile_context *c)
{
	struct pt_regs *regs = spile_registers(c);

	if (regs)
		return (long)regs_return_value(regs);
	if (c->probe->kind == SPILE_PROBE_SYSCALL)
		return (long)c->regs[SPILE_SYSCALL_RESULT];
	spile_fail_text(c, "returnval() has no registers here");
	return 0;
}

#ifdef CONFIG_X86_64
spile_long spile_fn_probing_32bit_app(struct spile_context *c)
{
	struct pt_regs *regs = user_registers();

	return regs && !user_64bit_mode(regs);
}

struct register_name {
	char name[12];
	u8 offset;	/* in struct pt_regs */
	u8 bytes;
};

#define REGISTER(name, field, bytes) { name, offsetof(struct pt_regs, field), bytes }
static const struct register_name register_names[] = {
	REGISTER("rax", ax, 8), REGISTER("rbx", bx, 8),
	REGISTER("rcx", cx, 8), REGISTER("rdx", dx, 8),
	REGISTER("rsi", si, 8), REGISTER("rdi", di, 8),
	REGISTER("rbp", bp, 8), REGISTER("rsp", sp, 8),
	REGISTER("r8", r8, 8), REGISTER("r9", r9, 8),
	REGISTER("r10", r10, 8), REGISTER("r11", r11, 8),
	REGISTER("r12", r12, 8), REGISTER("r13", r13, 8),
	REGISTER("r14", r14, 8), REGISTER("r15", r15, 8),
	REGISTER("rip", ip, 8), REGISTER("orig_rax", orig_ax, 8),
	REGISTER("eax", ax, 4), REGISTER("ebx", bx, 4),
	REGISTER("ecx", cx, 4), REGISTER("edx", dx, 4),
	REGISTER("esi", si, 4), REGISTER("edi", di, 4),
	REGISTER("ebp", bp, 4), REGISTER("esp", sp, 4),
	REGISTER("eip", ip, 4), REGISTER("orig_eax", orig_ax, 4), REGISTER("eflags", flags, 4),
	REGISTER("ax", ax, 8), REGISTER("bx", bx, 8), REGISTER("cx", cx, 8), REGISTER("dx", dx, 8),
	REGISTER("si", si, 8), REGISTER("di", di, 8), REGISTER("bp", bp, 8), REGISTER("sp", sp, 8),
	REGISTER("ip", ip, 8), REGISTER("orig_ax", orig_ax, 8),
	REGISTER("flags", flags, 4), REGISTER("rflags", flags, 8),
	REGISTER("cs", cs, 4), REGISTER("xcs", cs, 4),
	REGISTER("ss", ss, 4), REGISTER("xss", ss, 4),
};

const char *spile_register_name(unsigned int offset)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(register_names); i++)
		if (register_names[i].offset == offset)
			return register_names[i].name;
	return NULL;
}

/* The register's value, zero-extended, and its width; 0 bytes and an error if there is none. */
static u64 read_register(struct spile_context *c, struct spile_string name, unsigned int *bytes)
{
	struct pt_regs *regs = spile_registers(c);
	unsigned int i;

	*bytes = 0;
	if (!regs) {
		spile_fail_text(c, "No registers available in this context");
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(register_names); i++) {
		const struct register_name *known = &register_names[i];

		if (strlen(known->name) == name.length &&
		    !memcmp(known->name, name.text, name.length)) {
			u64 value = *(const unsigned long *)((const char *)regs + known->offset);

			if (known->offset == offsetof(struct pt_regs, ip))
				value = spile_hit_address(c, regs);
			*bytes = known->bytes;
			return known->bytes == 4 ? (u32)value : value;
		}
	}
	spile_fail_text(c, "Unknown register: %.*s", (int)name.length, name.text);
	return 0;
}

spile_long spile_fn_register(struct spile_context *c, struct spile_string name)
{
	unsigned int bytes;
	u64 value = read_register(c, name, &bytes);

	return bytes == 4 ? (s32)value : (s64)value;
}

spile_long spile_fn_u_register(struct spile_context *c, struct spile_string name)
{
	unsigned int bytes;

	return read_register(c, name, &bytes);
}

/*
 * Argument N, counted from 1, of a function that has just been entered: System V
 * ABI, AMD64 supplement, 3.2.3. In a 32-bit program all are on the stack, and `bytes` are read.
 */
static spile_long argument(struct spile_context *c, spile_long number, unsigned int bytes)
{
	static const u8 words[] = {
		offsetof(struct pt_regs, di), offsetof(struct pt_regs, si),
		offsetof(struct pt_regs, dx), offsetof(struct pt_regs, cx),
		offsetof(struct pt_regs, r8), offsetof(struct pt_regs, r9),
	};
	enum { MOST = 64 };	/* no function has more arguments */
	const struct spile_other_registers *other = &spile_cpu_of(c)->other;
	const struct pt_regs *regs = spile_registers(c);
	bool user, narrow;
	u64 value = 0;
	unsigned long at;

	if (other->have_arguments && number >= 1 && number <= ARRAY_SIZE(other->arguments))
		return other->arguments[number - 1];
	if (!regs) {
		if (c->probe->kind == SPILE_PROBE_TRACEPOINT && number >= 1 &&
		    number <= c->probe->tracepoint.arguments)
			return c->regs[number - 1];
		if (c->probe->kind == SPILE_PROBE_SYSCALL && number >= 1 &&
		    number <= SPILE_SYSCALL_RESULT)
			return c->regs[number - 1];
		spile_fail_text(c, "cannot get argument %lld: no registers available", number);
		return 0;
	}
	if (number < 1 || number > MOST) {
		spile_fail_text(c, "cannot access function argument %lld", number);
		return 0;
	}
	user = user_mode((struct pt_regs *)regs);
	narrow = user && !user_64bit_mode((struct pt_regs *)regs);
	if (!narrow && number <= ARRAY_SIZE(words))
		return *(const unsigned long *)((const char *)regs + words[number - 1]);
	at = narrow ? (u32)regs->sp + 4 * number : regs->sp + 8 * (number - ARRAY_SIZE(words));
	if (spile_memory_read(&value, at, narrow ? bytes : 8, user)) {
		if (user)
			spile_restart(c);
		spile_fail(c, SPILE_E_READ_FAULT, at);
	}
	return value;
}

/* In a 32-bit program it takes two words; those of its arguments are counted one by one. */
spile_long spile_fn_longlong_arg(struct spile_context *c, spile_long number)
{
	return argument(c, number, 8);
}

spile_long spile_fn_ulong_arg(struct spile_context *c, spile_long number)
{
	return argument(c, number, 4);
}

spile_long spile_fn_long_arg(struct spile_context *c, spile_long number)
{
	const struct pt_regs *regs = spile_registers(c);
	spile_long value = argument(c, number, 4);

	/* Arguments that are not in registers now are whole already. */
	if (!regs || spile_cpu_of(c)->other.have_arguments || !user_mode((struct pt_regs *)regs) ||
	    user_64bit_mode((struct pt_regs *)regs))
		return value;
	return (s32)value;
}

/*
 * The probed code continues with the changed register. Arguments on the stacks of programs are
 * not changed.
 */
void spile_fn___set_argument(struct spile_context *c, spile_long number, spile_long value)
{
	static const u8 words[] = {
		offsetof(struct pt_regs, di), offsetof(struct pt_regs, si),
		offsetof(struct pt_regs, dx), offsetof(struct pt_regs, cx),
		offsetof(struct pt_regs, r8), offsetof(struct pt_regs, r9),
	};
	struct pt_regs *regs = spile_registers(c);
	unsigned long *place;

	if (!regs || user_mode(regs) || number < 1 || number > ARRAY_SIZE(words)) {
		spile_fail_text(c, "argument %lld cannot be set here", number);
		return;
	}
	place = (unsigned long *)((char *)regs + words[number - 1]);
	if (spile_gate_passes(c, SPILE_GATE_ARGUMENT, number, *place, value))
		*place = value;
}

void spile_fn_print_regs(struct spile_context *c)
{
	struct pt_regs *regs = spile_registers(c);
	char text[640];		/* 24 registers of 22 bytes, and text between them */
	int length;

	if (!regs)
		return;
	length = scnprintf(
		text, sizeof(text),
		"RIP: %016lx\nRSP: %016lx  EFLAGS: %08lx\n"
		"RAX: %016lx RBX: %016lx RCX: %016lx\nRDX: %016lx RSI: %016lx RDI: %016lx\n"
		"RBP: %016lx R08: %016lx R09: %016lx\nR10: %016lx R11: %016lx R12: %016lx\n"
		"R13: %016lx R14: %016lx R15: %016lx\nCS: %04x SS: %04x ORIG_RAX: %016lx\n",
		spile_hit_address(c, regs), regs->sp, regs->flags, regs->ax, regs->bx, regs->cx,
		regs->dx, regs->si, regs->di, regs->bp, regs->r8, regs->r9, regs->r10, regs->r11,
		regs->r12, regs->r13, regs->r14, regs->r15,
		/* 16 bits wide since 6.9. */
		(u16)regs->cs, (u16)regs->ss, regs->orig_ax);
	spile_ring_text(spile_cpu_of(c), SPILE_RECORD_PRINT, SPILE_FORMAT_TEXT, text, length);
}
#else
spile_long spile_fn_probing_32bit_app(struct spile_context *c)
{
	return 0;
}

spile_long spile_fn_register(struct spile_context *c, struct spile_string name)
{
	spile_fail_text(c, "registers have no names on this architecture yet");
	return 0;
}

spile_long spile_fn_u_register(struct spile_context *c, struct spile_string name)
{
	return spile_fn_register(c, name);
}

spile_long spile_fn_longlong_arg(struct spile_context *c, spile_long number)
{
	struct pt_regs *regs = spile_registers(c);

	if (regs && number >= 1 && number <= 8)
		return regs_get_kernel_argument(regs, number - 1);
	spile_fail_text(c, "cannot get argument %lld", number);
	return 0;
}

void spile_fn___set_argument(struct spile_context *c, spile_long number, spile_long value)
{
	spile_fail_text(c, "argument %lld cannot be set on this architecture yet", number);
}

void spile_fn_print_regs(struct spile_context *c)
{
}
#endif

spile_long spile_fn_stack_size(struct spile_context *c)
{
	return THREAD_SIZE;
}

/* Bytes used of the current task's stack; 0 while the handler runs on an interrupt's stack. */
spile_long spile_fn_stack_used(struct spile_context *c)
{
	const struct pt_regs *regs = spile_registers(c);
	unsigned long at = regs && !user_mode((struct pt_regs *)regs) ?
				   kernel_stack_pointer((struct pt_regs *)regs) :
				   (unsigned long)__builtin_frame_address(0);
	unsigned long end = (unsigned long)task_stack_page(current) + THREAD_SIZE;

	return end - at < THREAD_SIZE ? end - at : 0;
}
