// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads and writes that may fault.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#ifdef CONFIG_X86
#include <asm/processor.h>
#endif

#include "context.h"
#include "memory.h"

int spile_memory_read(void *to, spile_ulong address, size_t bytes, bool user)
{
	long error;

	if (!user) {
		error = copy_from_kernel_nofault(to, (const void *)(unsigned long)address, bytes);
	} else {
		/* A kernel thread still has the last task's user memory mapped: not its own. */
		if (!current->mm)
			return -EFAULT;
		error = copy_from_user_nofault(to, (const void __user *)(unsigned long)address, bytes);
	}
	return error ? -EFAULT : 0;
}

/*
 * Whether [address, address + bytes) is kernel memory, not user memory: a guru's
 * wrong pointer must not write through to a process. On x86 a non-canonical
 * address would not fault but raise #GP, for which the kernel warns.
 */
static bool is_kernel_range(unsigned long address, size_t bytes)
{
	unsigned long last = address + bytes - 1;

	if (last < address)
		return false;
#ifdef CONFIG_X86_64
	{
		unsigned int shift = 64 - boot_cpu_data.x86_virt_bits;

		return (long)address < 0 &&
		       (unsigned long)((long)(address << shift) >> shift) == address;
	}
#else
	return address >= TASK_SIZE;
#endif
}

/*
 * copy_to_kernel_nofault() is not exported; this is what it does. The macro
 * exists on every architecture that has it at all: fa94111d9435 ("x86: use
 * non-set_fs based maccess routines"), first in 5.8.
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

static spile_ulong read_value(struct spile_context *c, spile_ulong address, unsigned int size, bool user)
{
	spile_ulong value = 0;	/* little endian: a short read leaves it zero-extended */

	if (size <= sizeof(value) && !spile_memory_read(&value, address, size, user))
		return value;
	spile_fail(c, SPILE_E_READ_FAULT, address);
	return 0;
}

spile_ulong spile_read(struct spile_context *c, spile_ulong address, unsigned int size)
{
	return read_value(c, address, size, false);
}

spile_ulong spile_read_user(struct spile_context *c, spile_ulong address, unsigned int size)
{
	return read_value(c, address, size, true);
}

void spile_write(struct spile_context *c, spile_ulong address, unsigned int size, spile_ulong value)
{
	if (size > sizeof(value) || spile_memory_write(address, &value, size))
		spile_fail(c, SPILE_E_WRITE_FAULT, address);
}
