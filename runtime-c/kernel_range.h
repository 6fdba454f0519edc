/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether addresses belong to the kernel. Without kernel headers: runtime-c/tests/units.c
 * includes it too.
 */
#ifndef SPILE_KERNEL_RANGE_H
#define SPILE_KERNEL_RANGE_H

/*
 * x86-64: whether all of [address, address + bytes) is in the kernel's half of
 * `address_bits` bits of address space, below `end`. bytes > 0. On the path of every -> of a script.
 */
static inline __attribute__((__always_inline__))
_Bool spile_is_kernel_range(unsigned long address, unsigned long bytes, unsigned int address_bits,
			    unsigned long end)
{
	unsigned int shift = 64 - address_bits;
	unsigned long last = address + bytes - 1;

	return (long)address < 0 &&
	       (unsigned long)((long)(address << shift) >> shift) == address &&
	       last >= address && last < end;
}

#endif
