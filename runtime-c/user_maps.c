// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mappings of the current task, read without locks.
 */
#include <linux/dcache.h>
#include <linux/elf.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/mm_types.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#ifdef CONFIG_X86_64
#include <asm/page.h>
#include <asm/vdso.h>
#endif

#include "features.h"
#include "kernel_range.h"
#include "memory.h"
#include "user_maps.h"

/* Nodes on a way from the root of a tree; directories above a file. */
enum { MAPS_MOST_DEPTH = 64, PATH_MOST_DEPTH = 32 };

/*
 * As spile_memory_is_kernel(), inline. The kernel's own test of the page tables in use is
 * patched code, part of which is in a section that every module keeps (.altinstr_aux), with
 * all functions that it returns to.
 */
static __always_inline bool is_kernel_object(unsigned long address, size_t bytes)
{
#ifdef CONFIG_X86_64
	static unsigned int address_bits __read_mostly;
	unsigned int bits = READ_ONCE(address_bits);

	if (unlikely(!bits)) {
		bits = spile_memory_address_bits();
		WRITE_ONCE(address_bits, bits);
	}
	return spile_is_kernel_range(address, bytes, bits, MODULES_END);
#else
	return spile_memory_is_kernel(address, bytes);
#endif
}

/*
 * Reads members of structures that may have been freed, after CHECK_POINTER(). Page faults are
 * off; `fault` is a label.
 */
#define CHECK_POINTER(pointer) \
	do { \
		if (!is_kernel_object((unsigned long)(pointer), sizeof(*(pointer)))) \
			goto fault; \
	} while (0)
#define READ_MEMBER(type, to, pointer, member) \
	__get_kernel_nofault(&(to), &(pointer)->member, type, fault)
#define READ_POINTER(to, pointer, member) \
	do { \
		unsigned long word_; \
		READ_MEMBER(unsigned long, word_, pointer, member); \
		(to) = (void *)word_; \
	} while (0)

/*
 * Whether the tree is being changed: by the current task, which was interrupted or probed
 * meanwhile, or by one that was preempted. From 6.1 until 6.5 nodes are marked dead before
 * others take their place, and a reader that meets one starts again, for as long as that takes.
 */
static bool is_being_changed(struct mm_struct *mm)
{
#ifdef CONFIG_PREEMPT_RT
	return rwsem_is_locked(&mm->mmap_lock);
#else
	enum { READER_OWNED = 1 };	/* of kernel/locking/rwsem.c */
	long owner = atomic_long_read(&mm->mmap_lock.owner);

	return owner && !(owner & READER_OWNED);
#endif
}

bool spile_maps_change(void)
{
	return is_being_changed(current->mm);
}

struct spile_maps_version spile_maps_version(void)
{
#ifdef CONFIG_X86_64
	mm_context_t *context = &current->mm->context;
	struct spile_maps_version version = {
		/* Of an address space, and after exec() it is another one. */
		.process = context->ctx_id,
		/*
		 * Whoever takes a page out of the tables, or forbids its execution, increments it
		 * after that and before the page or its mapping's place is used again: other CPUs
		 * may have the page in their TLBs.
		 */
		.losses = atomic64_read(&context->tlb_gen),
	};

	/* It is of a time before the mappings are read. */
	smp_rmb();
	return version;
#else
	return (struct spile_maps_version){};
#endif
}

#ifdef SPILE_HAVE_MAPLE_TREE_MAPS
/* The area at the address; with `next`, the one after it if there is none. */
static const struct vm_area_struct *area_at(struct mm_struct *mm, unsigned long address, bool next)
{
	const struct vm_area_struct *area;
	MA_STATE(place, &mm->mm_mt, address, address);

	/* A tree of early 6.1 kernels, whose nodes may be freed under the reader. */
	if (!mt_in_rcu(&mm->mm_mt) && atomic_read(&mm->mm_users) > 1)
		return NULL;
	if (is_being_changed(mm))
		return NULL;
	rcu_read_lock();
	area = next ? mas_find(&place, ULONG_MAX) : mas_walk(&place);
	rcu_read_unlock();
	return area;
}
#else
/* The same. Page faults are off. */
static const struct vm_area_struct *area_at(struct mm_struct *mm, unsigned long address, bool next)
{
	const struct rb_node *node = READ_ONCE(mm->mm_rb.rb_node);
	const struct vm_area_struct *behind = NULL;
	unsigned int depth;

	for (depth = 0; node && depth < MAPS_MOST_DEPTH; depth++) {
		const struct vm_area_struct *area = rb_entry(node, struct vm_area_struct, vm_rb);
		unsigned long start, end;

		CHECK_POINTER(area);
		READ_MEMBER(unsigned long, start, area, vm_start);
		READ_MEMBER(unsigned long, end, area, vm_end);
		if (address >= start && address < end)
			return area;
		if (address < start) {
			behind = area;
			READ_POINTER(node, node, rb_left);
		} else {
			READ_POINTER(node, node, rb_right);
		}
	}
	return next ? behind : NULL;
fault:
	return NULL;
}
#endif

/* Page faults are off. */
static bool read_key(const struct file *file, struct spile_file_key *key)
{
	const struct super_block *super;
	const struct inode *inode;
	unsigned long number;
	dev_t device;

	CHECK_POINTER(file);
	READ_POINTER(inode, file, f_inode);
	CHECK_POINTER(inode);
	READ_POINTER(super, inode, i_sb);
	READ_MEMBER(unsigned long, number, inode, i_ino);
	READ_MEMBER(u32, key->generation, inode, i_generation);
	CHECK_POINTER(super);
	READ_MEMBER(dev_t, device, super, s_dev);
	key->inode = number;
	key->device = new_encode_dev(device);
	return true;
fault:
	return false;
}

static bool is_vdso(const struct mm_struct *mm, unsigned long start)
{
#ifdef CONFIG_X86_64
	return start == (unsigned long)mm->context.vdso;
#else
	return false;
#endif
}

/* By its ELF class: a process that was restored may have another one than exec gives it. */
static bool has_narrow_vdso(const struct mm_struct *mm)
{
#ifdef CONFIG_X86_64
	const struct vdso_image *image = READ_ONCE(mm->context.vdso_image);

	return image && ((const u8 *)image->data)[EI_CLASS] == ELFCLASS32;
#else
	return false;
#endif
}

/* Page faults are off. */
static bool read_area(const struct mm_struct *mm, const struct vm_area_struct *area,
		      struct spile_mapping *mapping)
{
	unsigned long page;

	CHECK_POINTER(area);
	READ_MEMBER(unsigned long, mapping->start, area, vm_start);
	READ_MEMBER(unsigned long, mapping->end, area, vm_end);
	READ_MEMBER(unsigned long, mapping->flags, area, vm_flags);
	READ_MEMBER(unsigned long, page, area, vm_pgoff);
	READ_POINTER(mapping->file, area, vm_file);
	mapping->offset = (u64)page << PAGE_SHIFT;
	mapping->key = (struct spile_file_key){};
	mapping->kind = SPILE_MAPPING_ANONYMOUS;
	if (mapping->file) {
		mapping->kind = SPILE_MAPPING_FILE;
		return read_key(mapping->file, &mapping->key);
	}
	if (is_vdso(mm, mapping->start)) {
		mapping->kind = SPILE_MAPPING_VDSO;
		mapping->offset = 0;
		if (has_narrow_vdso(mm)) {
			mapping->kind = SPILE_MAPPING_VDSO_NARROW;
			mapping->key.generation = 1;
		}
	}
	return true;
fault:
	return false;
}

static bool find_mapping(unsigned long address, bool next, struct spile_mapping *mapping)
{
	struct mm_struct *mm = current->mm;
	const struct vm_area_struct *area;
	bool found;

	if (!mm)
		return false;
	pagefault_disable();
	area = area_at(mm, address, next);
	found = area && read_area(mm, area, mapping);
	pagefault_enable();
	return found && address < mapping->end;
}

bool spile_mapping_find(unsigned long address, struct spile_mapping *mapping)
{
	return find_mapping(address, false, mapping) && address >= mapping->start;
}

bool spile_mapping_next(unsigned long address, struct spile_mapping *mapping)
{
	return find_mapping(address, true, mapping);
}

/* Page faults are off. Puts the name before *at, not before `begin`. */
static bool put_name(const struct dentry *entry, char *begin, char **at)
{
	const unsigned char *name;
	unsigned int length;

	CHECK_POINTER(entry);
	READ_POINTER(name, &entry->d_name, name);
	READ_MEMBER(u32, length, &entry->d_name, len);
	if (length > NAME_MAX || *at - begin < length + 1)
		return false;
	if (spile_memory_read(*at - length, (unsigned long)name, length, false))
		return false;
	*at -= length + 1;
	**at = '/';
	return true;
fault:
	return false;
}

void spile_mapping_path(const struct spile_mapping *mapping, char *out, unsigned int bytes)
{
	const struct file *file = mapping->file;
	char *end = out + bytes - 1, *at = end;
	const struct dentry *entry, *parent;
	unsigned int depth;

	*end = 0;
	pagefault_disable();
	CHECK_POINTER(file);
	READ_POINTER(entry, file, f_path.dentry);
	for (depth = 0; depth < PATH_MOST_DEPTH; depth++, entry = parent) {
		CHECK_POINTER(entry);
		READ_POINTER(parent, entry, d_parent);
		if (parent == entry)
			break;
		if (!put_name(entry, out, &at)) {
			/* The first part is missing, so the path must not begin with a slash. */
			at += at < end;
			break;
		}
	}
fault:
	pagefault_enable();
	memmove(out, at, end - at + 1);
}
