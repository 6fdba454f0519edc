// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads and writes that may fault.
 */
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>
#ifdef CONFIG_X86_64
#include <asm/asm.h>
#include <asm/e820/types.h>
#include <asm/page.h>
#include <asm/pgtable.h>
#include <asm/processor.h>
#endif

#include "context.h"
#include "gate.h"
#include "kernel_range.h"
#include "memory.h"

/*
 * Whether [address, address + bytes) is memory of the kernel that may be read: a wrong pointer must
 * not lead into a process, nor to registers of devices, which reading may change. On x86 a
 * non-canonical address would not fault but raise #GP, for which the kernel warns. Behind the modules
 * are the registers of the CPU's interrupt controller, and the vsyscall page, which the fault handler
 * treats as user memory (Documentation/x86/x86_64/mm.rst). Canonical addresses depend on the page
 * tables in use, not on the CPU: one that could have five levels (x86_virt_bits is 57 then) runs
 * with four after `no5lvl`.
 */
#ifdef CONFIG_X86_64
/*
 * Whether the page is mapped, and not as registers are, without the caches (ioremap()). The processor
 * may read ahead in all other memory at any time, so nothing there can react to it; and the kernel
 * does not map registers with caches, because the firmware's memory types forbid it
 * (pat_x_mtrr_type()). Page tables may go away meanwhile: then what is read is wrong, but the reads
 * do not fault, and the address belongs to nobody.
 */
static bool is_cached_page(unsigned long address)
{
	enum { INDEX_BITS = 9 };
	unsigned long table = (unsigned long)__va(read_cr3_pa());
	unsigned int shift = __VIRTUAL_MASK_SHIFT + 1;

	do {
		unsigned long at, word, flags;

		shift -= INDEX_BITS;
		at = table + (address >> shift & ((1 << INDEX_BITS) - 1)) * sizeof(word);
		if (at < PAGE_OFFSET || at >= VMALLOC_START)
			return false;
		__get_kernel_nofault(&word, (unsigned long *)at, unsigned long, fault);
		flags = pte_flags(native_make_pte(word));
		if (!(flags & _PAGE_PRESENT))
			return false;
		if (shift == PAGE_SHIFT || flags & _PAGE_PSE)
			return !(flags & (_PAGE_PCD | _PAGE_PWT));
		/* Under Xen's paravirtualisation it is the machine's address until pte_val(). */
		table = (unsigned long)__va(pte_val(native_make_pte(word)) & PTE_PFN_MASK);
	} while (shift > PAGE_SHIFT);
fault:
	return false;
}

static bool is_cached(unsigned long address, size_t bytes)
{
	unsigned long page = address & PAGE_MASK, last = address + bytes - 1;
	unsigned long flags;
	bool cached;

	pagefault_disable();
	/* Other CPUs that take page tables away nearly always wait for this one. */
	raw_local_irq_save(flags);
	do {
		cached = is_cached_page(page);
		if (last - page < PAGE_SIZE)
			break;
		page += PAGE_SIZE;
	} while (cached);
	raw_local_irq_restore(flags);
	pagefault_enable();
	return cached;
}

/* is_kernel_range() for all but is_direct_range(). */
static noinline bool is_mapped_range(unsigned long address, size_t bytes)
{
	unsigned long stack = (unsigned long)task_stack_page(current);
	unsigned long last = address + bytes - 1;

	if (!spile_is_kernel_range(address, bytes, __VIRTUAL_MASK_SHIFT + 1, MODULES_END))
		return false;
	/* A hypervisor's, and segment descriptors of processes. */
	if (address < PAGE_OFFSET)
		return false;
	/* The kernel's code and data, modules. */
	if (address >= __START_KERNEL_map)
		return true;
	if (address - stack < THREAD_SIZE && last - stack < THREAD_SIZE)
		return true;
	/* Memory of graphics and other cards, which the kernel maps like RAM. */
	if (address - PAGE_OFFSET < ISA_END_ADDRESS)
		return last - PAGE_OFFSET < ISA_START_ADDRESS;
	return is_cached(address, bytes);
}

/*
 * Whether it is RAM at the place that it always has: most memory. (Memory of PCI devices that they lend
 * to others, MEMORY_DEVICE_PCI_P2PDMA, is there too; it has no registers.)
 */
static __always_inline bool is_direct_range(unsigned long address, size_t bytes)
{
	unsigned long begin = PAGE_OFFSET + ISA_END_ADDRESS;

	return address - begin < VMALLOC_START - begin && bytes - 1 < VMALLOC_START - address;
}

/* The same of eight bytes at most, by one comparison: before the first one is ROM. */
static __always_inline bool is_direct_value(unsigned long address, unsigned int size)
{
	unsigned long begin = PAGE_OFFSET + ISA_END_ADDRESS;

	return likely(address - begin + (size - 1) < VMALLOC_START - begin);
}
#else
static __always_inline bool is_mapped_range(unsigned long address, size_t bytes)
{
	return address >= TASK_SIZE && address + bytes - 1 >= address;
}

static __always_inline bool is_direct_range(unsigned long address, size_t bytes)
{
	return is_mapped_range(address, bytes);
}

static __always_inline bool is_direct_value(unsigned long address, unsigned int size)
{
	return is_mapped_range(address, size);
}
#endif

static __always_inline bool is_kernel_range(unsigned long address, size_t bytes)
{
	return is_direct_range(address, bytes) || is_mapped_range(address, bytes);
}

#ifdef CONFIG_X86_64
unsigned int spile_memory_address_bits(void)
{
	return __VIRTUAL_MASK_SHIFT + 1;
}
#endif

/* copy_from_user_nofault() has such a check of its own in newer kernels, at each call. */
bool spile_memory_is_own(void)
{
	/* A kernel thread still has the previous task's. */
	const struct mm_struct *mm = current->mm;

#ifdef CONFIG_X86_64
	return mm && mm->pgd == __va(read_cr3_pa());
#else
	return mm && !in_nmi();
#endif
}

bool spile_memory_is_kernel(unsigned long address, size_t bytes)
{
	return is_kernel_range(address, bytes);
}

#ifdef CONFIG_X86_64
enum { MANY_BYTES = 64 };

/*
 * For MANY_BYTES or more: by one instruction, where copy_from_kernel_nofault() has a loop of six for
 * each word. False if a part cannot be read.
 */
static __always_inline bool copy_kernel(void *to, unsigned long address, size_t bytes)
{
	const char *from = (const char *)address;
	size_t words = bytes / 8, rest = bytes & 7;

	pagefault_disable();
	/* A fault ends it, with the words that are left. */
	asm volatile("1:	rep movsq\n"
		     "2:\n" _ASM_EXTABLE(1b, 2b)
		     : "+c"(words), "+S"(from), "+D"(to)
		     :
		     : "memory");
	if (words)
		goto fault;
	if (rest)
		__get_kernel_nofault((char *)to + rest - 8, from + rest - 8, u64, fault);
	pagefault_enable();
	return true;
fault:
	pagefault_enable();
	return false;
}

/* Bytes before the first one that is zero; 8: there is none. */
static __always_inline unsigned int bytes_before_nul(u64 word)
{
	const u64 ones = 0x0101010101010101ull, tops = 0x8080808080808080ull;
	u64 ends = (word - ones) & ~word & tops;

	/* The lowest set bit belongs to the first one. */
	return ends ? __ffs64(ends) / 8 : 8;
}

/*
 * As spile_memory_string(), word by word: as a word does not cross a page, nothing beyond the text is
 * needed. -EAGAIN: try another way. Up to seven bytes after the text are written.
 */
static __always_inline int copy_words(char *out, unsigned int most, unsigned long address, bool user)
{
	unsigned int skip = address & 7, bytes = 8 - skip, length = 0, found;
	unsigned long at = address - skip;
	u64 word;

	pagefault_disable();
	if (user && !user_access_begin((const void __user *)at, most + 16)) {
		pagefault_enable();
		return -EAGAIN;
	}
	for (; length + 8 <= most; at += 8, length += bytes, bytes = 8) {
		if (user)
			unsafe_get_user(word, (const u64 __user *)at, fault);
		else
			__get_kernel_nofault(&word, (const u64 *)at, u64, fault);
		/* What is before the text becomes bytes after it that are no end. */
		if (bytes < 8)
			word = word >> (8 * skip) | ~0ull << (8 * bytes);
		found = bytes_before_nul(word);
		*(u64 *)(out + length) = word;
		if (found < 8) {
			length += found;
			goto end;
		}
	}
	/* Texts that fill the room are rare. */
	length = -EAGAIN;
end:
	if (user)
		user_access_end();
	pagefault_enable();
	return length;
fault:
	length = -EAGAIN;
	goto end;
}
#endif

int spile_memory_read(void *to, spile_ulong address, size_t bytes, bool user)
{
	long error;

	if (!bytes)
		return 0;
	if (!user) {
		/* The kernel's check depends on the features of the CPU, not on those in use. */
		if (!is_kernel_range(address, bytes))
			return -EFAULT;
#ifdef CONFIG_X86_64
		if (bytes >= MANY_BYTES)
			return copy_kernel(to, address, bytes) ? 0 : -EFAULT;
#endif
		error = copy_from_kernel_nofault(to, (const void *)(unsigned long)address, bytes);
	} else {
		if (!spile_memory_is_own()) {
			spile_this_cpu()->user_fault = 0;
			return -EFAULT;
		}
		error = copy_from_user_nofault(to, (const void __user *)(unsigned long)address,
					       bytes);
		if (unlikely(error)) {
			spile_this_cpu()->user_fault = address;
			spile_this_cpu()->user_fault_bytes = bytes;
		}
	}
	return error ? -EFAULT : 0;
}

/*
 * Reads one value of is_kernel_range(), as copy_from_kernel_nofault() does, but without loops and
 * calls: 40 instructions instead of 90 for each -> of a script.
 */
static __always_inline bool read_kernel_value(spile_ulong address, unsigned int size,
					      spile_ulong *value)
{
	const char *at = (const char *)(unsigned long)address;

	pagefault_disable();
	switch (size) {
	case 1:
		__get_kernel_nofault(value, at, u8, fault);
		break;
	case 2:
		__get_kernel_nofault(value, at, u16, fault);
		break;
	case 4:
		__get_kernel_nofault(value, at, u32, fault);
		break;
	case 8:
		__get_kernel_nofault(value, at, u64, fault);
		break;
	default:
		goto fault;
	}
	pagefault_enable();
	return true;
fault:
	pagefault_enable();
	return false;
}

/*
 * copy_to_kernel_nofault() is not exported; this does the same. The macro exists on every
 * architecture that has it at all: "x86: use non-set_fs based maccess routines", first in
 * 5.8.
 */
int spile_memory_write(spile_ulong address, const void *from, size_t bytes)
{
	char *at = (char *)(unsigned long)address;
	const char *source = from;

	if (!is_kernel_range(address, bytes))
		return -EFAULT;

	pagefault_disable();
	for (; bytes >= sizeof(u64); bytes -= sizeof(u64), at += sizeof(u64), source += sizeof(u64))
		__put_kernel_nofault(at, source, u64, fault);
	for (; bytes >= sizeof(u32); bytes -= sizeof(u32), at += sizeof(u32), source += sizeof(u32))
		__put_kernel_nofault(at, source, u32, fault);
	for (; bytes >= sizeof(u16); bytes -= sizeof(u16), at += sizeof(u16), source += sizeof(u16))
		__put_kernel_nofault(at, source, u16, fault);
	for (; bytes; bytes--, at++, source++)
		__put_kernel_nofault(at, source, u8, fault);
	pagefault_enable();
	return 0;
fault:
	pagefault_enable();
	return -EFAULT;
}

int spile_memory_string(char *out, unsigned int most, spile_ulong address, bool user)
{
	enum { CHUNK = 64 };
	unsigned int length = 0;

#ifdef CONFIG_X86_64
	if (user ? spile_memory_is_own() : is_kernel_range(address & ~7ul, most + 16ul)) {
		int copied = user ? copy_words(out, most, address, true) :
				    copy_words(out, most, address, false);

		if (likely(copied != -EAGAIN))
			return copied;
	}
#endif
	while (length < most) {
		unsigned int bytes = CHUNK - (address & (CHUNK - 1));
		const char *nul;

		bytes = min(bytes, most - length);
		if (spile_memory_read(out + length, address, bytes, user))
			return -EFAULT;
		nul = memchr(out + length, 0, bytes);
		if (nul)
			return nul - out;
		length += bytes;
		address += bytes;
	}
	return length;
}

void spile_restart(struct spile_context *c)
{
	struct spile_cpu *cpu = spile_cpu_of(c);
	struct spile_restarting *run = cpu->restarting;
	unsigned int i;

	/* An interrupt's run has other registers. Nothing is at NULL. */
	if (!run || c->regs != run->regs || c->error || cpu->user_fault < PAGE_SIZE)
		return;
	for (i = 0; i < run->hopeless_count; i++)
		if (run->hopeless[i] == cpu->user_fault)
			return;
	run->missing = cpu->user_fault;
	run->missing_bytes = cpu->user_fault_bytes;
	spile_fail(c, SPILE_E_RESTART, 0);
	/* It does not count as handled; fault_in.c. */
	c->filtered = 1;
}

static noinline spile_ulong read_elsewhere(struct spile_context *c, spile_ulong address,
					   unsigned int size)
{
	spile_ulong value = 0;

	if (is_mapped_range(address, size) && read_kernel_value(address, size, &value))
		return value;
	spile_fail(c, SPILE_E_READ_FAULT, address);
	return 0;
}

spile_ulong spile_read(struct spile_context *c, spile_ulong address, unsigned int size)
{
	spile_ulong value = 0;	/* little endian: a short read leaves it zero-extended */

	/* The last call, so that nothing has to be saved before it. */
	if (!is_direct_value(address, size))
		return read_elsewhere(c, address, size);
	if (likely(read_kernel_value(address, size, &value)))
		return value;
	spile_fail(c, SPILE_E_READ_FAULT, address);
	return 0;
}

spile_ulong spile_read_user(struct spile_context *c, spile_ulong address, unsigned int size)
{
	spile_ulong value = 0;

	if (size <= sizeof(value) && !spile_memory_read(&value, address, size, true))
		return value;
	spile_restart(c);
	spile_fail(c, SPILE_E_READ_FAULT, address);
	return 0;
}

void spile_write_user(struct spile_context *c, spile_ulong address, unsigned int size,
		      spile_ulong value)
{
	if (size > sizeof(value) || spile_gate_write_user(c, address, &value, size))
		spile_fail(c, SPILE_E_WRITE_FAULT, address);
}

void spile_write(struct spile_context *c, spile_ulong address, unsigned int size, spile_ulong value)
{
	if (size > sizeof(value) || spile_gate_write(c, address, &value, size))
		spile_fail(c, SPILE_E_WRITE_FAULT, address);
}
