/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What differs between the kernels served (5.10 and later), in one place. The
 * rest of the runtime is written for the newest. Each SPILE_HAVE_ comes from
 * the compile probe of its name in features/, never from a version number. Each
 * entry names the macro, the kernel's commit, the first release with it and when
 * the entry can go (a test checks that). A commit is named by its subject, since
 * stable and distribution branches have it under other hashes (git log --grep).
 */
#ifndef SPILE_FEATURES_H
#define SPILE_FEATURES_H

#include <linux/ftrace.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/proc_fs.h>
#include <linux/uprobes.h>
#include <linux/workqueue.h>

#include "spile_features.h"	/* made by Makefile.kbuild */

/*
 * Indirect calls check the callee's prototype. Callbacks of tracepoints here take words, not what
 * the event passes, so the kernel would stop at the first hit, or warn at each (CFI_PERMISSIVE),
 * under whatever lock the event has.
 */
static inline bool spile_prototypes_are_checked(void)
{
	return IS_ENABLED(CONFIG_CFI_CLANG) || IS_ENABLED(CONFIG_CFI);
}

/*
 * SPILE_HAVE_CPUIDLE_ENTER: no function that can be probed runs on an idle CPU that RCU does not
 * watch: "cpuidle: Fix ct_idle_*() usage", first in 6.3, which with the others of its series makes
 * this code noinstr. Used by context.c. Can go when 6.1 has.
 */
#ifdef SPILE_HAVE_CPUIDLE_ENTER
enum { SPILE_IDLE_IS_PROBED = false };
#else
enum { SPILE_IDLE_IS_PROBED = true };
#endif

/*
 * SPILE_HAVE_MIGRATE_DISABLE: a task stays on its CPU and can be preempted there:
 * "sched: Make migrate_disable/enable() independent of RT", first in 5.11; in 5.10 it
 * disables preemption. Used by actions.c. Can go when 5.10 has.
 */

/*
 * SPILE_HAVE_EXEC_STATE: whether a process may be debugged by its user is kept with what exec
 * has replaced, no longer with its memory: "that moved to task->exec_state" in linux/mm_types.h
 * (not the commit's subject, which headers do not have), first in 7.3. Can go when 6.12 has.
 */
#ifdef SPILE_HAVE_EXEC_STATE
#include <linux/sched/exec_state.h>
#else
#include <linux/sched/coredump.h>
#endif

/* Whether the task, whose memory this is, may be debugged by the user whom it belongs to. */
static inline bool spile_is_dumpable(const struct task_struct *task, struct mm_struct *mm)
{
#ifdef SPILE_HAVE_EXEC_STATE
	bool is_dumpable;

	rcu_read_lock();
	is_dumpable = rcu_dereference(task->exec_state)->dumpable == TASK_DUMPABLE_OWNER;
	rcu_read_unlock();
	return is_dumpable;
#else
	return get_dumpable(mm) == SUID_DUMP_USER;
#endif
}

/*
 * SPILE_HAVE_HEX_HEADER: hex_to_bin() and the like have a header of their own:
 * "kernel.h: Split the hexadecimal related helpers to hex.h", first in 6.4. kernel.h
 * no longer includes it in 7.3. Can go when 6.1 has.
 */
#ifdef SPILE_HAVE_HEX_HEADER
#include <linux/hex.h>
#endif

/*
 * SPILE_HAVE_UNWIND_START: modules can walk the stack of a task from given registers:
 * "x86/unwind: Add new unwind interface and implementations", first in 4.9. Used by
 * stack.c. Can go when all architectures served have it: only x86 does.
 */
#ifdef SPILE_HAVE_UNWIND_START
#include <asm/unwind.h>
#endif

/*
 * SPILE_HAVE_HRTIMER_SETUP: hrtimer_setup() takes the handler: "hrtimers: Introduce
 * hrtimer_setup() to replace hrtimer_init()", first in 6.13; hrtimer_init() is gone
 * in 6.15. Can go when 6.12 has.
 */
static inline void spile_hrtimer_setup(struct hrtimer *timer,
				       enum hrtimer_restart (*handler)(struct hrtimer *timer),
				       clockid_t clock, enum hrtimer_mode mode)
{
#ifdef SPILE_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, handler, clock, mode);
#else
	hrtimer_init(timer, clock, mode);
	timer->function = handler;
#endif
}

/*
 * SPILE_HAVE_GET_KRETPROBE: an instance no longer points to its kretprobe directly:
 * "kprobes: Remove kretprobe hash", first in 5.11. Can go when 5.10 has.
 */
static inline struct kretprobe *spile_get_kretprobe(struct kretprobe_instance *instance)
{
#ifdef SPILE_HAVE_GET_KRETPROBE
	return get_kretprobe(instance);
#else
	return instance->rp;
#endif
}

/*
 * SPILE_HAVE_KRETPROBE_FIND_RET_ADDR: a kretprobe's handler finds the real return
 * address in the instruction pointer, as "x86/kprobes: Fixup return address in
 * generic trampoline handler" makes it. That came with "kprobes: Add
 * kretprobe_find_ret_addr() for searching return address", first in 5.16, which a
 * compile probe can see. Before, the pointer is at the trampoline, and nothing reads
 * it again after the handler. Can go when 5.10 has.
 */
static inline void spile_registers_of_return(const struct kretprobe_instance *instance,
					     struct pt_regs *regs)
{
#ifndef SPILE_HAVE_KRETPROBE_FIND_RET_ADDR
	instruction_pointer_set(regs, (unsigned long)instance->ret_addr);
#endif
}

/*
 * SPILE_HAVE_KPROBE_FAULT_HANDLER: a page fault in a kprobe's handler counts as one of the
 * hits that kprobe.nmissed has, and calls kprobe.fault_handler. "kprobes: Remove
 * kprobe::fault_handler", first in 5.14, ended both. Can go when 5.10 has.
 */

/*
 * SPILE_HAVE_MODULE_MEMORY: struct module_memory mem[] instead of struct
 * module_layout: "module: replace module_layout with module_memory", first in 6.4.
 * Can go when 6.1 has.
 */

/* A module's read-only data, where its notes are. */
static inline const void *spile_module_rodata(const struct module *module, size_t *bytes)
{
#ifdef SPILE_HAVE_MODULE_MEMORY
	*bytes = module->mem[MOD_RODATA].size;
	return module->mem[MOD_RODATA].base;
#else
	*bytes = module->core_layout.ro_size - module->core_layout.text_size;
	return module->core_layout.base + module->core_layout.text_size;
#endif
}

/* Bytes of a module: its code, its read-only data, its writable data. */
static inline void spile_module_sizes(const struct module *module, size_t *text, size_t *rodata,
				      size_t *data)
{
#ifdef SPILE_HAVE_MODULE_MEMORY
	*text = module->mem[MOD_TEXT].size;
	*rodata = module->mem[MOD_RODATA].size + module->mem[MOD_RO_AFTER_INIT].size;
	*data = module->mem[MOD_DATA].size;
#else
	*text = module->core_layout.text_size;
	*rodata = module->core_layout.ro_after_init_size - module->core_layout.text_size;
	*data = module->core_layout.size - module->core_layout.ro_after_init_size;
#endif
}

/*
 * Where a module's code is, or that of its init; *bytes is 0 if it has none, or no longer has it.
 */
static inline unsigned long spile_module_code(const struct module *module, bool of_init,
					      unsigned long *bytes)
{
#ifdef SPILE_HAVE_MODULE_MEMORY
	const struct module_memory *memory = &module->mem[of_init ? MOD_INIT_TEXT : MOD_TEXT];

	*bytes = memory->base ? memory->size : 0;
	return (unsigned long)memory->base;
#else
	const struct module_layout *layout = of_init ? &module->init_layout : &module->core_layout;

	*bytes = layout->base ? layout->text_size : 0;
	return (unsigned long)layout->base;
#endif
}

/*
 * SPILE_HAVE_TRACE_PUTS_MEASURES: __trace_puts() measures the text itself: "tracing:
 * Remove size parameter in __trace_puts()", not yet in 6.12, in 7.3. text[length] is
 * NUL. Can go when 6.12 has.
 */
static inline void spile_trace_puts(unsigned long ip, const char *text, unsigned int length)
{
#ifdef CONFIG_TRACING
#ifdef SPILE_HAVE_TRACE_PUTS_MEASURES
	__trace_puts(ip, text);
#else
	__trace_puts(ip, text, length);
#endif
#endif
}

/*
 * SPILE_HAVE_PDE_DATA_LOWER: pde_data() in lower case: "proc: remove PDE_DATA()
 * completely", first in 5.17. Can go when 5.10 has.
 */
static inline void *spile_pde_data(const struct inode *inode)
{
#ifdef SPILE_HAVE_PDE_DATA_LOWER
	return pde_data(inode);
#else
	return PDE_DATA(inode);
#endif
}

/*
 * SPILE_HAVE_EXCEPTION_STACKS: the exception stacks have the names that stack_left.c uses,
 * and lie in the CPU entry areas: "x86/exceptions: Add structs for exception stacks", first
 * in 5.2. Need not go: on a kernel with other names, only the rest of the page of a hit's
 * stack pointer counts as stack.
 */

/*
 * SPILE_HAVE_PREEMPTIBLE_EVENTS: tracepoints of system calls are called with
 * preemption on: "tracing: Allow system call tracepoints to handle page faults",
 * first in 6.13. Before, all are called with preemption off. Can go when 6.12 has.
 */
static __always_inline void spile_event_begins(void)
{
#ifdef SPILE_HAVE_PREEMPTIBLE_EVENTS
	preempt_disable_notrace();
#endif
}

static __always_inline void spile_event_ends(void)
{
#ifdef SPILE_HAVE_PREEMPTIBLE_EVENTS
	preempt_enable_notrace();
#endif
}

/*
 * SPILE_HAVE_UPROBE_DATA: handlers of uprobes take a word for each call: "uprobe: Add
 * data pointer to consumer handlers", first in 6.13. Can go when 6.12 has.
 */
#ifdef SPILE_HAVE_UPROBE_DATA
#define SPILE_UPROBE_DATA , __u64 *unused
#else
#define SPILE_UPROBE_DATA
#endif

/*
 * SPILE_HAVE_FPU_OF_TASK: x86_task_fpu() says where the kernel keeps a task's vector registers,
 * which struct thread_struct has no more then: "x86/fpu: Introduce the x86_task_fpu() helper
 * method", first in 6.16. With CONFIG_X86_DEBUG_FPU, as Debian has it, that is a function which is
 * not exported, so this is its macro without. Can go when 6.12 has.
 */
#ifdef SPILE_HAVE_FPU_OF_TASK
#define SPILE_FPU_OF(task) ((struct fpu *)((void *)(task) + sizeof(*(task))))
#else
#define SPILE_FPU_OF(task) (&(task)->thread.fpu)
#endif
/*
 * SPILE_HAVE_FPU_FPSTATE: there is a pointer to them: "x86/fpu: Provide struct fpstate", first in
 * 5.16. Can go when 5.10 has.
 */
#ifdef SPILE_HAVE_FPU_FPSTATE
#define SPILE_FPU_REGISTERS(fpu) (&(fpu)->fpstate->regs)
#else
#define SPILE_FPU_REGISTERS(fpu) (&(fpu)->state)
#endif

/*
 * SPILE_HAVE_PERF_REMOVE_ON_EXEC: an event can end at an exec: "perf: Add support for event
 * removal on exec", first in 5.13. Can go when 5.10 has; there a process that runs another program
 * keeps the event, and the handler's guard leaves its hits out.
 */

/*
 * SPILE_HAVE_UPROBE_FILTER_MM: the filter of a uprobe does not get the operation: "uprobes:
 * get rid of enum uprobe_filter_ctx in uprobe filter callbacks", first in 6.12. Can go when
 * 6.1 has.
 */
#ifdef SPILE_HAVE_UPROBE_FILTER_MM
#define SPILE_UPROBE_FILTER(name) bool name(struct uprobe_consumer *self, struct mm_struct *mm)
#else
#define SPILE_UPROBE_FILTER(name) \
	bool name(struct uprobe_consumer *self, enum uprobe_filter_ctx unused, \
		  struct mm_struct *mm)
#endif

/*
 * SPILE_HAVE_UPROBE_HANDLE: uprobe_register() gives a handle, by which it is
 * unregistered without waiting: "uprobes: make uprobe_register() return struct uprobe
 * *", first in 6.12. Can go when 6.1 has.
 */
static inline int spile_uprobe_add(struct inode *inode, loff_t offset, loff_t counted,
				   struct uprobe_consumer *consumer, struct uprobe **handle)
{
#ifdef SPILE_HAVE_UPROBE_HANDLE
	*handle = uprobe_register(inode, offset, counted, consumer);
	return PTR_ERR_OR_ZERO(*handle);
#else
	if (counted)
		return uprobe_register_refctr(inode, offset, counted, consumer);
	return uprobe_register(inode, offset, consumer);
#endif
}

static inline void spile_uprobe_remove(struct inode *inode, loff_t offset,
				       struct uprobe_consumer *consumer, struct uprobe *handle)
{
#ifdef SPILE_HAVE_UPROBE_HANDLE
	uprobe_unregister_nosync(handle, consumer);
#else
	uprobe_unregister(inode, offset, consumer);
#endif
}

/* No handler of those that were removed runs any more. */
static inline void spile_uprobe_wait(void)
{
#ifdef SPILE_HAVE_UPROBE_HANDLE
	uprobe_unregister_sync();
#endif
}

#ifdef CONFIG_DYNAMIC_FTRACE_WITH_REGS
/*
 * SPILE_HAVE_FTRACE_REGS: the function of a ftrace_ops gets a struct ftrace_regs
 * instead of a struct pt_regs: "ftrace: Have the callbacks receive a struct
 * ftrace_regs instead of pt_regs", first in 5.11. Can go when 5.10 has.
 *
 * SPILE_HAVE_ARCH_FTRACE_REGS: its members are only accessible through arch_ftrace_regs():
 * "ftrace: Make ftrace_regs abstract from direct use", first in 6.13. Can go when 6.12 has.
 */
#if defined(SPILE_HAVE_ARCH_FTRACE_REGS)
typedef struct ftrace_regs spile_ftrace_regs;
#define spile_ftrace_words(given) (&arch_ftrace_regs(given)->regs)
#elif defined(SPILE_HAVE_FTRACE_REGS)
typedef struct ftrace_regs spile_ftrace_regs;
#define spile_ftrace_words(given) (&(given)->regs)
#else
typedef struct pt_regs spile_ftrace_regs;
#define spile_ftrace_words(given) (given)
#endif

/*
 * SPILE_HAVE_FTRACE_RECURSION_SAFE: without this flag ftrace puts a guard of its own
 * around the call, which drops hits silently. The meaning was reversed, so that
 * nothing need be asked for, by "ftrace: Reverse what the RECURSION flag means in the
 * ftrace_ops", first in 5.11. Can go when 5.10 has.
 */
#ifdef SPILE_HAVE_FTRACE_RECURSION_SAFE
#define SPILE_FTRACE_UNGUARDED FTRACE_OPS_FL_RECURSION_SAFE
#else
#define SPILE_FTRACE_UNGUARDED 0
#endif

/*
 * SPILE_HAVE_FTRACE_SET_FILTER_IPS: many addresses for a filter in one call: "ftrace:
 * Add ftrace_set_filter_ips function", first in 5.18. Can go when 5.10 has.
 */
static inline int spile_ftrace_set_filter_ips(struct ftrace_ops *ops, unsigned long *addresses,
					      unsigned int count, bool remove)
{
#ifdef SPILE_HAVE_FTRACE_SET_FILTER_IPS
	return ftrace_set_filter_ips(ops, addresses, count, remove, 0);
#else
	return -EOPNOTSUPP;
#endif
}

/*
 * The same, replacing the filter's contents. An error if ftrace does not know one of them,
 * or there is no memory.
 */
static inline int spile_ftrace_set_filter_only(struct ftrace_ops *ops, unsigned long *addresses,
					       unsigned int count)
{
#ifdef SPILE_HAVE_FTRACE_SET_FILTER_IPS
	return ftrace_set_filter_ips(ops, addresses, count, 0, 1);
#else
	return -EOPNOTSUPP;
#endif
}

#ifdef SPILE_HAVE_FTRACE_SET_FILTER_IPS
enum { SPILE_FTRACE_FILTERS_MANY = 1 };
#else
enum { SPILE_FTRACE_FILTERS_MANY = 0 };
#endif
#endif

/*
 * SPILE_HAVE_MAPLE_TREE_MAPS: the mappings of a process are in a maple tree, which
 * can be read under RCU: "mm: start tracking VMAs with maple tree", first in 6.1.
 * Used by user_maps.c. Can go when 5.10 has.
 */
#ifdef SPILE_HAVE_MAPLE_TREE_MAPS
#include <linux/maple_tree.h>
#endif

/*
 * SPILE_HAVE_VM_FAULT_COMPLETED: a fault that was allowed to release the lock of the mappings may say
 * that it did and needs no retry: "mm: avoid unnecessary page fault retires on shared memory types",
 * first in 6.0. Can go when 5.10 has.
 */
static inline bool spile_fault_is_completed(vm_fault_t result)
{
#ifdef SPILE_HAVE_VM_FAULT_COMPLETED
	return result & VM_FAULT_COMPLETED;
#else
	return false;
#endif
}

/*
 * SPILE_HAVE_SYSTEM_DFL_WQ: the queue for work that is bound to no CPU has another name:
 * "workqueue: Add system_percpu_wq and system_dfl_wq", first in 6.17; 7.3 warns when the
 * old one is used. Can go when 6.12 has.
 */
static inline struct workqueue_struct *spile_unbound_queue(void)
{
#ifdef SPILE_HAVE_SYSTEM_DFL_WQ
	return system_dfl_wq;
#else
	return system_unbound_wq;
#endif
}

/*
 * SPILE_HAVE_PAGE_KMEMCG: a page that is charged to a cgroup has a type, and vm_insert_page() takes
 * no pages with types. Gone with "mm: Convert page kmemcg type to a page memcg flag",
 * first in 5.11. Used by ring.c. Can go when 5.10 has.
 *
 * Both map memory of the module, which stays at least as long as the file that is mapped. The first
 * is called by mmap and maps the area's first page; it also prepares the area for the other one, which is
 * called where pages are missing.
 */
static inline int spile_map_first(struct vm_area_struct *vma, void *memory)
{
#ifdef SPILE_HAVE_PAGE_KMEMCG
	return remap_pfn_range(vma, vma->vm_start, vmalloc_to_pfn(memory), PAGE_SIZE,
			       vma->vm_page_prot);
#else
	return vm_insert_page(vma, vma->vm_start, vmalloc_to_page(memory));
#endif
}

static inline vm_fault_t spile_map_missing(struct vm_fault *fault, void *memory)
{
	unsigned long address = fault->address & PAGE_MASK;

#ifdef SPILE_HAVE_PAGE_KMEMCG
	return vmf_insert_pfn(fault->vma, address, vmalloc_to_pfn(memory));
#else
	return vmf_insert_page(fault->vma, address, vmalloc_to_page(memory));
#endif
}

#endif
