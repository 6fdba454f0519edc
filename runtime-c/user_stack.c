// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks of user space.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#ifdef CONFIG_X86_64
#include <asm/vdso.h>
#endif

#include "script.h"
#include "context.h"
#include "memory.h"
#include "original_return.h"
#include "owner.h"
#include "user_files.h"
#include "user_known.h"
#include "user_maps.h"
#include "user_stack.h"

unsigned int spile_user_known_bytes(void)
{
	return sizeof(struct spile_user_known);
}

/* A walk from frame to frame. */
struct user_walk {
	struct spile_cpu *cpu;
	const struct pt_regs *regs;	/* of the innermost frame; NULL beyond it */
	const struct pt_regs *callee;	/* the same, in its caller's frame */
	unsigned long pc;
	unsigned long sp;
	unsigned long fp;
	bool returns;			/* pc is a return address */
	bool enters;			/* it is a function's first instruction */
	bool narrow;			/* of a 32-bit program */
	struct spile_user_known *known;
	bool fleeting;			/* what was found may not be kept */
	const struct spile_walk_mapping *at;	/* the one with pc; NULL: none */
};

/*
 * An address in the frame's function: the byte before a return address, which may belong to the
 * next function.
 */
static unsigned long code_of(const struct user_walk *walk)
{
	return walk->pc - walk->returns;
}

static inline bool is_in(const struct spile_mapping *mapping, unsigned long code)
{
	return code - mapping->start < mapping->end - mapping->start;
}

static struct spile_walk_mapping *find_known(struct spile_user_known *known, unsigned long code)
{
	unsigned int i, count = min_t(unsigned int, known->mapping_count, SPILE_WALK_MAPPINGS);

	for (i = 0; i < count; i++)
		if (is_in(&known->mappings[i].mapping, code))
			return &known->mappings[i];
	return NULL;
}

/* Finds the mapping of the frame; false if it is not executable memory. */
static bool locate(struct user_walk *walk)
{
	struct spile_user_known *known = walk->known;
	unsigned long code = code_of(walk);
	struct spile_walk_mapping *at;

	/* Most callers are in the same file. */
	if (walk->at && is_in(&walk->at->mapping, code))
		return walk->at->mapping.flags & VM_EXEC;
	at = find_known(known, code);
	if (!at) {
		at = &known->mappings[known->mapping_count % SPILE_WALK_MAPPINGS];
		walk->at = NULL;
		/* Also of a change that ends meanwhile. */
		walk->fleeting |= spile_maps_change();
		/* The old contents are invalid from here on. */
		at->mapping.end = at->mapping.start;
		if (!spile_mapping_find(code, &at->mapping)) {
			/* It may have been filled in part. */
			at->mapping.end = at->mapping.start;
			return false;
		}
		at->file = spile_user_file(walk->cpu, &at->mapping, code);
		at->file_place = at->file ? (u64)spile_user_file_id(at->file)
						    << SPILE_PLACE_SHIFT :
					    0;
		/* Its file may get an entry. */
		walk->fleeting |= spile_maps_change() ||
				  (!at->file && at->mapping.kind != SPILE_MAPPING_ANONYMOUS);
		/* It may become executable without a loss: not to be found again. */
		if (at->mapping.flags & VM_EXEC)
			known->mapping_count++;
		else
			at->mapping.end = at->mapping.start;
	}
	walk->at = at;
	return at->mapping.flags & VM_EXEC;
}

static u64 offset_of_code(const struct spile_mapping *mapping, unsigned long code)
{
	return code - mapping->start + mapping->offset;
}

static inline u64 place_in(const struct spile_mapping *mapping, u64 file_place,
			   unsigned long address)
{
	if (likely(file_place))
		return file_place |
		       (offset_of_code(mapping, address) & ((1ull << SPILE_PLACE_SHIFT) - 1));
	return mapping->kind == SPILE_MAPPING_ANONYMOUS ? spile_owner_process() : 0;
}

static inline u64 frame_place(const struct user_walk *walk)
{
	const struct spile_walk_mapping *at = walk->at;

	/* A return address may be the end of the mapping: its offset is one more. */
	return at ? place_in(&at->mapping, at->file_place, walk->pc) : 0;
}

/* Takes the return address that a probe of the return has replaced. */
static noinline void pass_trampoline(struct user_walk *walk, unsigned long at)
{
	walk->pc = spile_original_return(at, walk->pc);
}

/* Follows frame pointers, as `push %rbp; mov %rsp, %rbp` makes them. */
static bool follow_pointer(struct user_walk *walk)
{
	unsigned int bytes = walk->narrow ? sizeof(u32) : sizeof(u64);
	unsigned long fp = walk->fp;
	u64 wide[2];
	u32 words[2];

	/* Stacks grow down: a frame that is not above the last one is invalid. */
	if (fp < walk->sp || fp % bytes)
		return false;
	if (walk->narrow) {
		if (spile_memory_read(words, fp, sizeof(words), true))
			return false;
		wide[0] = words[0];
		wide[1] = words[1];
	} else if (spile_memory_read(wide, fp, sizeof(wide), true)) {
		return false;
	}
	if (!wide[1])
		return false;
	walk->fp = wide[0];
	walk->pc = wide[1];
	if (unlikely(spile_has_returns()))
		pass_trampoline(walk, fp + bytes);
	walk->sp = fp + 2 * bytes;
	walk->returns = true;
	return true;
}

#ifdef CONFIG_X86_64
/* Page faults are off, and spile_memory_is_own() holds: it is not asked again for each word. */
static __always_inline bool read_word(unsigned long address, unsigned long *value)
{
	return address < TASK_SIZE_MAX - sizeof(*value) &&
	       !__get_user(*value, (const unsigned long __user *)address);
}

/* The same of a word of the frame's code. */
static bool read_value(const struct user_walk *walk, unsigned long address, unsigned long *value)
{
	u32 narrow;

	if (likely(!walk->narrow))
		return read_word(address, value);
	if (address >= TASK_SIZE_MAX - sizeof(narrow) ||
	    __get_user(narrow, (const u32 __user *)address))
		return false;
	*value = narrow;
	return true;
}

static unsigned int word_of(const struct user_walk *walk)
{
	return walk->narrow ? sizeof(u32) : sizeof(u64);
}

static bool general_register(const struct pt_regs *regs, unsigned int number,
			     unsigned long *value)
{
	static const u8 places[] = {
		offsetof(struct pt_regs, ax),  offsetof(struct pt_regs, dx),
		offsetof(struct pt_regs, cx),  offsetof(struct pt_regs, bx),
		offsetof(struct pt_regs, si),  offsetof(struct pt_regs, di),
		offsetof(struct pt_regs, bp),  offsetof(struct pt_regs, sp),
		offsetof(struct pt_regs, r8),  offsetof(struct pt_regs, r9),
		offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
		offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13),
		offsetof(struct pt_regs, r14), offsetof(struct pt_regs, r15),
	};

	if (!regs || number >= ARRAY_SIZE(places))
		return false;
	*value = *(const unsigned long *)((const char *)regs + places[number]);
	return true;
}

static bool register_of(const struct user_walk *walk, unsigned int number, unsigned long *value)
{
	if (number == 6)
		*value = walk->fp;
	else if (number == 7)
		*value = walk->sp;
	else if (!general_register(walk->regs, number, value))
		return false;
	if (walk->narrow)
		*value = (u32)*value;
	return true;
}

/*
 * struct rt_sigframe (arch/x86/include/asm/sigframe.h) without the return address: struct
 * ucontext with the registers at 40, in the order of struct sigcontext_64.
 */
static bool leave_signal(struct user_walk *walk)
{
	enum { SIGNAL_RBP = 120, SIGNAL_RSP = 160, SIGNAL_RIP = 168 };
	unsigned long at = walk->sp;

	if (!read_word(at + SIGNAL_RBP, &walk->fp) || !read_word(at + SIGNAL_RSP, &walk->sp) ||
	    !read_word(at + SIGNAL_RIP, &walk->pc))
		return false;
	walk->returns = false;
	return true;
}

/* The kernel's copy of the frame's code in a vDSO: the process may not have its page yet. */
static const void *vdso_code(const struct user_walk *walk, unsigned int bytes)
{
	const struct vdso_image *image = current->mm->context.vdso_image;
	unsigned long at;

	if (!image || !walk->at || walk->at->mapping.kind != SPILE_MAPPING_VDSO_NARROW)
		return NULL;
	at = walk->pc - walk->at->mapping.start;
	return at < image->size && bytes <= image->size - at ? image->data + at : NULL;
}

/* Whether the frame's code is this. */
static bool is_code(const struct user_walk *walk, const u8 *code, unsigned int bytes)
{
	const void *known = vdso_code(walk, bytes);
	u8 found[9];

	if (known)
		return !memcmp(known, code, bytes);
	return bytes <= sizeof(found) && !spile_memory_read(found, walk->pc, bytes, true) &&
	       !memcmp(found, code, bytes);
}

/*
 * `mov $15, %eax; syscall`: a signal handler returns there, in a libc without tables for
 * it.
 */
static bool is_restorer(const struct user_walk *walk)
{
	static const u8 code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	return walk->returns && is_code(walk, code, sizeof(code));
}

/*
 * The frame that a signal has made on the stack of a 32-bit program (asm/sigframe.h), which
 * depends on the system call that it ends with. Its registers are those of struct
 * sigcontext_32.
 */
static bool leave_signal_narrow(struct user_walk *walk)
{
	/* `pop %eax; mov $119, %eax; int $0x80`, and `mov $173, %eax; int $0x80` */
	static const u8 plain[] = { 0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80 };
	static const u8 queued[] = { 0xb8, 173, 0, 0, 0, 0xcd, 0x80 };
	/* After the return address: the signal; two pointers, siginfo and what precedes it in ucontext. */
	enum { PLAIN_CONTEXT = 4, QUEUED_CONTEXT = 4 + 8 + 128 + 20 };
	enum { CONTEXT_EBP = 24, CONTEXT_ESP = 28, CONTEXT_EIP = 56 };
	unsigned long at = walk->sp;

	if (!walk->returns)
		return false;
	if (is_code(walk, plain, sizeof(plain)))
		at += PLAIN_CONTEXT;
	else if (is_code(walk, queued, sizeof(queued)))
		at += QUEUED_CONTEXT;
	else
		return false;
	if (!read_value(walk, at + CONTEXT_EBP, &walk->fp) ||
	    !read_value(walk, at + CONTEXT_ESP, &walk->sp) ||
	    !read_value(walk, at + CONTEXT_EIP, &walk->pc))
		return false;
	walk->returns = false;
	return true;
}

/* The end of __kernel_vsyscall(), where a 32-bit program's system calls return to. */
static bool leave_system_call(struct user_walk *walk)
{
	/* `pop %ebp; pop %edx; pop %ecx; ret` */
	static const u8 code[] = { 0x5d, 0x5a, 0x59, 0xc3 };
	unsigned long sp = walk->sp;

	if (walk->returns || !is_code(walk, code, sizeof(code)) ||
	    !read_value(walk, sp, &walk->fp) || !read_value(walk, sp + 12, &walk->pc))
		return false;
	if (unlikely(spile_has_returns()))
		pass_trampoline(walk, sp + 12);
	walk->sp = sp + 16;
	walk->returns = true;
	return true;
}

/*
 * A register that the function which the frame has called saves at walk->sp + offset, below its
 * CFA. Where it has not done so yet, or has restored it, its stack pointer is above that place.
 */
static bool saved_by_callee(const struct user_walk *walk, unsigned int number, int offset,
			    unsigned long *value)
{
	unsigned long at = walk->sp + offset;

	if (walk->regs)
		return register_of(walk, number, value);
	/* A signal's handler is not what it has called. */
	if (!walk->returns)
		return false;
	if (walk->callee && at < user_stack_pointer((struct pt_regs *)walk->callee))
		return general_register(walk->callee, number, value);
	return read_value(walk, at, value);
}

static bool frame_address(const struct user_walk *walk, const struct spile_unwind_rule *rule,
			  unsigned long *address)
{
	unsigned int word = word_of(walk), base = rule->base & SPILE_UNWIND_REGISTER;

	if (rule->next == SPILE_UNWIND_STUB) {
		*address = walk->sp + word * (1 + ((walk->pc & 15) >= rule->cfa));
		return true;
	}
	if (rule->next == SPILE_UNWIND_BY_CALLEE) {
		if (!saved_by_callee(walk, base, rule->frame, address))
			return false;
		*address += rule->cfa;
		return true;
	}
	if (!register_of(walk, base, address))
		return false;
	*address += rule->cfa;
	if (rule->base & SPILE_UNWIND_DEREFERENCE && !read_value(walk, *address, address))
		return false;
	*address += rule->base & SPILE_UNWIND_ADD_WORD ? word : 0;
	return true;
}

enum { UNWIND_BY_STACK = 7 };	/* rsp */

/* Takes the return address, which is below the CFA. */
static __always_inline bool take_stored(struct user_walk *walk, unsigned long cfa)
{
	if (!read_word(cfa - 8, &walk->pc))
		return false;
	if (unlikely(spile_has_returns()))
		pass_trampoline(walk, cfa - 8);
	return true;
}

static noinline bool take_stored_narrow(struct user_walk *walk, unsigned long cfa)
{
	if (!read_value(walk, cfa - 4, &walk->pc))
		return false;
	if (spile_has_returns())
		pass_trampoline(walk, cfa - 4);
	return true;
}

/* Finds the CFA and the caller's rbp; false if that fails. */
static bool find_frame(struct user_walk *walk, const struct spile_unwind_rule *rule,
		       unsigned long *cfa)
{
	unsigned long fp = walk->fp;

	/* A CFA below the stack pointer is invalid: the walk ends. */
	if (!frame_address(walk, rule, cfa) || *cfa < walk->sp)
		return false;
	if (rule->base & SPILE_UNWIND_FRAME_BASED)
		return read_value(walk, fp + rule->frame, &walk->fp);
	return !rule->frame || rule->next == SPILE_UNWIND_BY_CALLEE ||
	       read_value(walk, *cfa + rule->frame, &walk->fp);
}

static noinline bool apply_unusual(struct user_walk *walk, const struct spile_unwind_rule *rule)
{
	unsigned long cfa;

	if (rule->next == SPILE_UNWIND_END)
		return false;
	if (rule->next == SPILE_UNWIND_SIGNAL)
		return walk->narrow ? leave_signal_narrow(walk) : leave_signal(walk);
	if (!find_frame(walk, rule, &cfa))
		return false;
	if (rule->next >= SPILE_UNWIND_IN_REGISTER) {
		if (!register_of(walk, rule->next - SPILE_UNWIND_IN_REGISTER, &walk->pc))
			return false;
	} else if (walk->narrow ? !take_stored_narrow(walk, cfa) : !take_stored(walk, cfa)) {
		return false;
	}
	walk->sp = cfa;
	walk->returns = true;
	return walk->pc;
}

/* Inline: a call would be a fifth of the work of most frames. */
static __always_inline bool apply(struct user_walk *walk, const struct spile_unwind_rule *rule)
{
	unsigned long cfa = walk->sp + rule->cfa;

	/* Most frames: the size is a constant, and the caller's rbp is still in its register. */
	if (unlikely(rule->base != UNWIND_BY_STACK || rule->next != SPILE_UNWIND_STORED ||
		     rule->frame))
		return apply_unusual(walk, rule);
	if (cfa < walk->sp || !take_stored(walk, cfa))
		return false;
	walk->sp = cfa;
	walk->returns = true;
	return walk->pc;
}

/* The frame's step, if it is known. */
static inline const struct spile_walk_step *known_step(const struct user_walk *walk)
{
	u64 key = spile_walk_key(walk->pc, walk->returns);
	const struct spile_walk_step *step = spile_walk_step(walk->known, key);

	return step->key == key && step->generation == walk->known->generation && !walk->narrow ?
		       step :
		       NULL;
}

static void keep_step(const struct user_walk *walk, const struct spile_unwind_rule *rule)
{
	u64 key = spile_walk_key(walk->pc, walk->returns);

	*spile_walk_step(walk->known, key) = (struct spile_walk_step){
		.key = key,
		.generation = walk->known->generation,
		.place = frame_place(walk),
		.rule = *rule,
	};
}

/* Of a function that has not made its frame: frame pointers lead to the caller's caller. */
static bool leave_entered(struct user_walk *walk)
{
	unsigned long cfa = walk->sp + word_of(walk);

	if (walk->narrow ? !take_stored_narrow(walk, cfa) : !take_stored(walk, cfa))
		return false;
	walk->sp = cfa;
	walk->returns = true;
	return walk->pc;
}

/* Goes to the caller's frame; false if it cannot be found, or there is none. */
static bool step(struct user_walk *walk)
{
	const struct spile_unwind_rule *rule = NULL;
	const struct spile_unwind_table *table;
	unsigned long code = code_of(walk);

	if (walk->at && walk->at->file && walk->at->mapping.kind != SPILE_MAPPING_VDSO_NARROW) {
		table = spile_user_file_table(walk->cpu, walk->at->file, code);
		if (table)
			rule = spile_unwind_rule_at(walk->at->file, table,
						    offset_of_code(&walk->at->mapping, code));
	}
	/* Code of both kinds may be in one process. */
	if (rule && !(rule->base & SPILE_UNWIND_NARROW) == !walk->narrow) {
		if (!walk->narrow)
			keep_step(walk, rule);
		return apply(walk, rule);
	}
	if (walk->enters && !walk->returns)
		return leave_entered(walk);
	if (walk->narrow)
		return leave_system_call(walk) || leave_signal_narrow(walk) || follow_pointer(walk);
	return is_restorer(walk) ? leave_signal(walk) : follow_pointer(walk);
}

/* The same from a known step. */
static inline bool take_step(struct user_walk *walk, const struct spile_walk_step *known)
{
	return apply(walk, &known->rule);
}

static bool is_narrow(const struct pt_regs *regs)
{
	return !user_64bit_mode((struct pt_regs *)regs);
}
#else
static inline const struct spile_walk_step *known_step(const struct user_walk *walk)
{
	return NULL;
}

static bool step(struct user_walk *walk)
{
	return follow_pointer(walk);
}

static inline bool take_step(struct user_walk *walk, const struct spile_walk_step *known)
{
	return false;
}

static bool is_narrow(const struct pt_regs *regs)
{
	return false;
}
#endif

static void walk_frames(struct user_walk *walk)
{
	struct spile_cpu *cpu = walk->cpu;
	const struct spile_walk_step *known;
	struct spile_user_frame *frame;
	bool executable, own;

	walk->known = cpu->user_known;
	pagefault_disable();
	spile_user_known_begin(walk->known);
	/* It holds until the end: interrupts are off during a run. */
	own = spile_memory_is_own();
	do {
		known = known_step(walk);
		executable = known || locate(walk);
		/* The innermost frame is reported even if its mapping is not known. */
		if (cpu->stack_count && !executable)
			break;
		if (cpu->stack_count && cpu->stack_count == spile_script.stack_frames) {
			cpu->stacks_deep++;
			break;
		}
		frame = &cpu->user_stack[cpu->stack_count];
		*frame = (struct spile_user_frame){
			walk->pc,
			known ? known->place : frame_place(walk),
		};
		/* A signal came: the next instruction is this one. */
		if (unlikely(!walk->returns) && cpu->stack_count)
			frame->place |= SPILE_PLACE_INTERRUPTED;
		cpu->stack_count++;
		if (!executable || !own || !(likely(known) ? take_step(walk, known) : step(walk)))
			break;
		/* A frame that a signal has made calls nothing. */
		walk->callee = walk->returns ? walk->regs : NULL;
		walk->regs = NULL;
		walk->enters = false;
	} while (true);
	if (walk->fleeting)
		spile_user_known_forget(walk->known);
	pagefault_enable();
}

static bool is_entered(struct spile_context *c, const struct pt_regs *regs)
{
	const struct spile_probe *probe = c->probe;

	return probe &&
	       (probe->kind == SPILE_PROBE_UPROBE || probe->kind == SPILE_PROBE_URETPROBE) &&
	       probe->uprobe.at_entry &&
	       instruction_pointer((struct pt_regs *)regs) ==
		       probe->uprobe.address + spile_cpu_of(c)->program_slide;
}

unsigned int spile_stack_user(struct spile_context *c, const struct spile_user_frame **frames)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	struct pt_regs *regs = spile_registers(c);
	struct user_walk walk = { .cpu = cpu };

	*frames = cpu->user_stack;
	if (cpu->stack_kind == SPILE_STACK_USER)
		return cpu->stack_count;
	cpu->stack_kind = SPILE_STACK_USER;
	c->stale |= SPILE_STALE_RUN;
	cpu->stack_count = 0;
	if (!current->mm)
		return 0;
	if (!regs || !user_mode(regs))
		regs = task_pt_regs(current);
	if (!user_mode(regs))
		return 0;
	walk.regs = regs;
	walk.pc = instruction_pointer(regs);
	walk.sp = user_stack_pointer(regs);
	walk.fp = frame_pointer(regs);
	walk.narrow = is_narrow(regs);
	walk.enters = is_entered(c, regs);
	walk_frames(&walk);
	return cpu->stack_count;
}

unsigned int spile_stack_user_from(struct spile_context *c, unsigned long pc, unsigned long sp,
				   unsigned long fp, const struct spile_user_frame **frames)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	struct user_walk walk = { .cpu = cpu, .pc = pc, .sp = sp, .fp = fp };

	*frames = cpu->user_stack;
	/* This is not the stack of the run; the next request walks that one again. */
	cpu->stack_kind = SPILE_STACK_NONE;
	cpu->stack_count = 0;
	if (!current->mm)
		return 0;
	walk.narrow = is_narrow(task_pt_regs(current));
	walk_frames(&walk);
	return cpu->stack_count;
}

u64 spile_user_place(struct spile_context *c, unsigned long address)
{
	struct spile_user_file *file;
	struct spile_mapping mapping;

	if (!spile_mapping_find(address, &mapping))
		return 0;
	file = spile_user_file(spile_cpu_of(c), &mapping, address);
	return place_in(&mapping,
			file ? (u64)spile_user_file_id(file) << SPILE_PLACE_SHIFT : 0, address);
}
