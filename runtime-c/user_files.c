// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files whose code is in user stacks, and their unwind tables.
 *
 * A hash table that handlers add to without a lock, in NMI too: an entry is taken by cmpxchg,
 * filled in, and released. An entry that another CPU has taken but not filled in is skipped:
 * that hit has no file for the frame. Entries are never removed.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "context.h"
#include "owner.h"
#include "ring.h"
#include "session.h"
#include "user_files.h"

enum {
	FILE_PROBES = 32,		/* places that an entry may be at */
	FILE_MAPPINGS = 512,		/* of a process, that are searched for files to request */
	FILE_ASK_NS = 1000000000,	/* between two requests for a file */
	UNWIND_MOST_PLACES = 8 << 20,
};

enum { FILE_FREE, FILE_TAKEN, FILE_THERE };

/* SPILE_FILES of them; NULL if the script takes no stacks of user space. */
static struct spile_user_file *user_files;
static atomic_t wanted_files = ATOMIC_INIT(0);

/* Only one table is taken at a time; protects unwind_bytes. */
static DEFINE_MUTEX(tables_lock);
static size_t unwind_bytes;

static bool has_key(const struct spile_user_file *file, const struct spile_file_key *key)
{
	return file->key.inode == key->inode && file->key.device == key->device &&
	       file->key.generation == key->generation;
}

/* The entry of the key, which is created if there is none; NULL if that fails at the moment. */
static struct spile_user_file *entry_of(const struct spile_mapping *mapping, unsigned long address)
{
	const struct spile_file_key *key = &mapping->key;
	u32 at = hash_64(key->inode * 31 + key->device + key->generation, 32), i;

	for (i = 0; i < FILE_PROBES; i++) {
		struct spile_user_file *file = &user_files[(at + i) % SPILE_FILES];
		/* Acquire: for its key; pairs with the release below. */
		int state = smp_load_acquire(&file->state);

		if (state == FILE_FREE &&
		    cmpxchg(&file->state, FILE_FREE, FILE_TAKEN) == FILE_FREE) {
			file->key = *key;
			file->process = task_tgid_nr(current);
			file->address = address;
			if (mapping->kind == SPILE_MAPPING_FILE)
				spile_mapping_path(mapping, file->path, sizeof(file->path));
			/* Release: for the fields above; pairs with the acquire above. */
			smp_store_release(&file->state, FILE_THERE);
			return file;
		}
		if (state == FILE_THERE && has_key(file, key))
			return file;
		/*
		 * Taken by another CPU, perhaps for the same key, which must not get two
		 * entries.
		 */
		if (state != FILE_THERE)
			return NULL;
	}
	return NULL;
}

/* False if it was requested recently. */
static bool request_table(struct spile_user_file *file, unsigned long address)
{
	u64 now = ktime_get_mono_fast_ns();

	if (READ_ONCE(file->table) || READ_ONCE(file->wanted) ||
	    (file->asked && now - file->asked < FILE_ASK_NS))
		return false;
	file->asked = now;
	file->process = task_tgid_nr(current);
	file->address = address;
	if (xchg(&file->wanted, 1))
		return false;
	atomic_inc(&wanted_files);
	return true;
}

unsigned int spile_user_files_request(struct spile_cpu *cpu, struct spile_user_file **missing,
				      unsigned int most)
{
	struct spile_user_file *file;
	struct spile_mapping mapping;
	unsigned int i, count = 0;
	unsigned long at = 0;
	bool requested = false;

	for (i = 0; i < FILE_MAPPINGS && spile_mapping_next(at, &mapping); i++) {
		at = mapping.end;
		if (!(mapping.flags & VM_EXEC) || mapping.kind == SPILE_MAPPING_ANONYMOUS)
			continue;
		file = entry_of(&mapping, mapping.start);
		if (!file)
			continue;
		requested |= request_table(file, mapping.start);
		/* Acquire: as in spile_user_file_table(). */
		if (count < most && !smp_load_acquire(&file->table))
			missing[count++] = file;
	}
	if (requested)
		spile_ring_call_reader(cpu);
	return count;
}

struct spile_user_file *spile_user_file(struct spile_cpu *cpu, const struct spile_mapping *mapping,
					unsigned long address)
{
	if (!user_files || mapping->kind == SPILE_MAPPING_ANONYMOUS)
		return NULL;
	return entry_of(mapping, address);
}

u32 spile_user_file_id(const struct spile_user_file *file)
{
	return file - user_files + 1;
}

struct spile_user_file *spile_user_file_with(u32 id)
{
	struct spile_user_file *file;

	if (!user_files || id - 1 >= SPILE_FILES)
		return NULL;
	file = &user_files[id - 1];
	/* Acquire: as in entry_of(). */
	return smp_load_acquire(&file->state) == FILE_THERE ? file : NULL;
}

const struct spile_unwind_table *spile_user_file_table(struct spile_cpu *cpu,
						       struct spile_user_file *file,
						       unsigned long address)
{
	/* Acquire: for the table's contents; pairs with the release in keep_table(). */
	const struct spile_unwind_table *table = smp_load_acquire(&file->table);

	/*
	 * And the tables of all its code: its stacks will have more of it, and the task may have
	 * ended when the loader reads the request.
	 */
	if (unlikely(!table) && request_table(file, address)) {
		spile_user_files_request(cpu, NULL, 0);
		spile_ring_call_reader(cpu);
	}
	return table;
}

/*
 * Rules found before, because the search takes most of a step from frame to frame. An entry is one
 * word, which is read and written at once: offset, file, and the rule's index. What it says never
 * changes, as a file's table does not; it is only replaced by that of another offset.
 */
enum {
	FOUND_BITS = 10,
	FOUND_INDEX_BITS = 16,
	FOUND_FILE_SHIFT = 48,
};

_Static_assert(SPILE_FILES < 1 << (64 - FOUND_FILE_SHIFT), "a file's number does not fit");

static u64 found_rules[1 << FOUND_BITS];

static inline u64 *found_place(u64 key)
{
	return &found_rules[key * 0x9e3779b97f4a7c15ull >> (64 - FOUND_BITS)];
}

/* The index of the last place that is not after the offset. */
static u16 search_table(const struct spile_unwind_table *table, u32 offset)
{
	const u32 *places = table->places;
	u32 count = table->place_count, at = 0;

	/* places[at] is never after the offset. */
	while (count > 1) {
		u32 half = count / 2;

		at += places[at + half] <= offset ? half : 0;
		count -= half;
	}
	return table->indices[at];
}

const struct spile_unwind_rule *spile_unwind_rule_at(const struct spile_user_file *file,
						     const struct spile_unwind_table *table,
						     u64 offset)
{
	/* Never 0: files have numbers from 1 on. */
	u64 key = (u64)spile_user_file_id(file) << FOUND_FILE_SHIFT |
		  (offset & U32_MAX) << FOUND_INDEX_BITS;
	u64 *place = found_place(key);
	u64 found = READ_ONCE(*place);
	u16 index;

	if (!table->place_count || offset > U32_MAX || (u32)offset < table->places[0])
		return NULL;
	if (likely((found ^ key) >> FOUND_INDEX_BITS == 0)) {
		index = found;
	} else {
		index = search_table(table, offset);
		WRITE_ONCE(*place, key | index);
	}
	return index < table->rule_count ? &table->rules[index] : NULL;
}

bool spile_user_files_wanted(void)
{
	return atomic_read(&wanted_files) > 0;
}

/* The process id in the caller's namespace; 0 if the process has ended. */
static u32 process_here(pid_t process)
{
	u32 number;

	rcu_read_lock();
	number = pid_vnr(find_pid_ns(process, &init_pid_ns));
	rcu_read_unlock();
	return number;
}

static void describe_file(const struct spile_user_file *from, struct spile_file *file)
{
	*file = (struct spile_file){
		.id = spile_user_file_id(from),
		.flags = READ_ONCE(from->table) ? SPILE_FILE_HAS_TABLE : 0,
		.inode = from->key.inode,
		.device = from->key.device,
		.generation = from->key.generation,
		.process = process_here(READ_ONCE(from->process)),
		.address = READ_ONCE(from->address),
	};
	memcpy(file->path, from->path, sizeof(file->path));
}

int spile_user_files_find(struct spile_file *file)
{
	const struct spile_user_file *found = spile_user_file_with(file->id);

	if (!found)
		return -ENOENT;
	describe_file(found, file);
	return 0;
}

int spile_user_files_next_wanted(struct spile_file *file)
{
	struct spile_user_file *found;
	u32 id;

	for (id = 1; spile_user_files_wanted() && id <= SPILE_FILES; id++) {
		found = spile_user_file_with(id);
		if (!found || !READ_ONCE(found->wanted) || !xchg(&found->wanted, 0))
			continue;
		atomic_dec(&wanted_files);
		if (READ_ONCE(found->table))
			continue;
		describe_file(found, file);
		return 0;
	}
	return -ENOENT;
}

/* Bytes of a table's parts; 0: too many. */
static size_t bytes_of(const struct spile_unwind *unwind)
{
	if (unwind->rules >= SPILE_UNWIND_UNKNOWN || unwind->places > UNWIND_MOST_PLACES ||
	    unwind->build_id_bytes > sizeof(unwind->build_id) || !unwind->rules != !unwind->places)
		return 0;
	return sizeof(struct spile_unwind_table) +
	       unwind->rules * sizeof(struct spile_unwind_rule) +
	       unwind->places * (sizeof(u32) + sizeof(u16));
}

/* Copies the caller's table; an error pointer on failure. */
static struct spile_unwind_table *copy_table(const struct spile_unwind *unwind, size_t bytes)
{
	struct spile_unwind_table *table =
		__vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	size_t head = sizeof(*table);

	if (!table)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user((char *)table + head, u64_to_user_ptr(unwind->table), bytes - head)) {
		vfree(table);
		return ERR_PTR(-EFAULT);
	}
	*table = (struct spile_unwind_table){
		.rule_count = unwind->rules,
		.place_count = unwind->places,
		.rules = (const struct spile_unwind_rule *)(table + 1),
		.build_id_bytes = unwind->build_id_bytes,
	};
	table->places = (const u32 *)(table->rules + unwind->rules);
	table->indices = (const u16 *)(table->places + unwind->places);
	memcpy(table->build_id, unwind->build_id, sizeof(table->build_id));
	return table;
}

static int keep_table(struct spile_user_file *file, const struct spile_unwind *unwind)
{
	size_t bytes = bytes_of(unwind);
	struct spile_unwind_table *table;

	if (!bytes)
		return -EINVAL;
	if (READ_ONCE(file->table))
		return -EEXIST;
	if (unwind_bytes + bytes > SPILE_UNWIND_MOST)
		return -ENOSPC;
	if (bytes > spile_owner_left())
		return -EDQUOT;
	table = copy_table(unwind, bytes);
	if (IS_ERR(table))
		return PTR_ERR(table);
	unwind_bytes += bytes;
	spile_session_charge(bytes);
	/* Release: for the table; pairs with the acquire in spile_user_file_table(). */
	smp_store_release(&file->table, table);
	return 0;
}

int spile_user_files_unwind(struct spile_unwind *unwind)
{
	struct spile_user_file *file;
	struct spile_mapping mapping;
	int error;

	if (!user_files || unwind->reserved)
		return -EINVAL;
	/* The caller keeps it mapped. */
	if (!spile_mapping_find(unwind->mapping, &mapping) ||
	    mapping.kind == SPILE_MAPPING_ANONYMOUS)
		return -EFAULT;
	preempt_disable();
	file = entry_of(&mapping, unwind->mapping);
	preempt_enable();
	if (!file)
		return -EAGAIN;
	unwind->id = spile_user_file_id(file);
	mutex_lock(&tables_lock);
	error = keep_table(file, unwind);
	mutex_unlock(&tables_lock);
	/* Of one that could not be kept there will be none: nobody waits for it. */
	if (error && error != -EEXIST)
		WRITE_ONCE(file->awaited, true);
	else
		spile_tables_added();
	return error;
}

int spile_user_files_init(void)
{
	size_t bytes = array_size(SPILE_FILES, sizeof(*user_files));

	if (!spile_script.user_stacks)
		return 0;
	if (!spile_session_affords("files of user space", bytes, 0, num_possible_cpus()))
		return -ENOMEM;
	user_files = vzalloc(bytes);
	if (!user_files)
		return -ENOMEM;
	spile_session_charge(bytes);
	return 0;
}

void spile_user_files_exit(void)
{
	u32 i;

	for (i = 0; user_files && i < SPILE_FILES; i++)
		vfree(user_files[i].table);
	vfree(user_files);
	user_files = NULL;
}
