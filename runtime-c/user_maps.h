/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file that is mapped at an address of the current task.
 *
 * The lock of the address space cannot be taken in a handler: this may be an interrupt of the
 * code that holds it, and unlocking wakes waiters, which takes locks of the scheduler that the
 * probed code may hold. So the kernel's tree of mappings is read without it:
 *
 * - from 6.1 on, the maple tree, which readers walk under RCU (mas_walk());
 * - before, the red-black tree, by fault-safe reads of a bounded
 *   number of nodes: a walk during a rotation can miss a mapping, but always ends.
 *
 * The mapping's file and inode are then read in the same way. The task is the current one, so
 * only other threads of it can change its mappings meanwhile. A mapping that they remove at this
 * moment may still be found: then the frame is wrong, or missing.
 */
#ifndef SPILE_USER_MAPS_H
#define SPILE_USER_MAPS_H

#include <linux/fs.h>
#include <linux/types.h>

/* An inode; 0, of device 0: the vDSO, and with generation 1 that of processes of 32 bits. */
struct spile_file_key {
	u64 inode;
	u32 device;
	u32 generation;	/* inode numbers are reused */
};

enum spile_mapping_kind {
	SPILE_MAPPING_ANONYMOUS,	/* of no file: code made at run time, uprobes */
	SPILE_MAPPING_FILE,
	SPILE_MAPPING_VDSO,
	SPILE_MAPPING_VDSO_NARROW,	/* of 32 bits: another one than the loader has */
};

struct spile_mapping {
	unsigned long start;
	unsigned long end;
	unsigned long flags;		/* VM_EXEC ... */
	u64 offset;			/* of start, in the file */
	enum spile_mapping_kind kind;
	struct spile_file_key key;
	const struct file *file;	/* only to be read by spile_mapping_path() */
};

/* Of the current task's process. If two are equal, and not 0, code that has run is still there. */
struct spile_maps_version {
	u64 process;		/* never used again for another one; 0: not known */
	u64 losses;		/* how often pages have been taken out of its page tables, or more */
};

/* Any context; the task has an address space. */
struct spile_maps_version spile_maps_version(void);
/* Whether mappings of the current task's process are being changed. Any context. */
bool spile_maps_change(void);

/* False if there is none at the address, or it is not known. Any context. */
bool spile_mapping_find(unsigned long address, struct spile_mapping *mapping);
/* The first mapping that ends after the address; false as above. Any context. */
bool spile_mapping_next(unsigned long address, struct spile_mapping *mapping);

/*
 * Path of the file within its file system, or its end where it does not fit, or "". Writes
 * a NUL at the end. Any context, at once after spile_mapping_find().
 */
void spile_mapping_path(const struct spile_mapping *mapping, char *out, unsigned int bytes);

#endif
