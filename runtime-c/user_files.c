// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files whose code is in user stacks, and their unwind tables.
 *
 * A hash table that handlers add to without a lock, in NMI too: an entry is taken by cmpxchg,
 * filled in, and released. An entry that another CPU has taken but not filled in is skipped:
 * that hit has no file for the frame. Entries are never removed.
 *
 * Any user can make files and run their code. So root and the session's owner always find a quarter of
 * the table free, and of the rest one user gets half; the same for the memory of unwind tables. A file is
 * charged to the user who first ran it, until one of those two does.
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/random.h>
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
	FILE_SEARCH_NS = 100000000,	/* between two searches of a process on one CPU */
	UNWIND_MOST_PLACES = 8 << 20,
	SHARES = 256,			/* two users may have one together */
	OTHERS_FILES = SPILE_FILES / 4 * 3,	/* not of root, nor of the owner */
	SHARE_FILES = OTHERS_FILES / 2,
	OTHERS_BYTES = SPILE_UNWIND_MOST / 4 * 3,
	SHARE_BYTES = OTHERS_BYTES / 2,
};

enum { FILE_FREE, FILE_TAKEN, FILE_THERE };

/* SPILE_FILES of them; NULL if the script takes no stacks of user space. */
static struct spile_user_file *user_files;
static atomic_t wanted_files = ATOMIC_INIT(0);

/* Odd: nobody can choose files that have the same places as another one. */
static u64 inode_factor, device_factor;

/* What users other than root and the owner have, by a hash of the user; 0 is not used. */
struct user_share {
	atomic_t files;
	size_t unwind_bytes;		/* tables_lock */
};
static struct user_share user_shares[SHARES], all_shares;

/* Only one table is taken at a time; protects unwind_bytes. */
static DEFINE_MUTEX(tables_lock);
static size_t unwind_bytes;

/* What is told once, by the loader's thread that makes tables: a hit may be in any context. */
enum { FULL_NOT, FULL_TO_TELL, FULL_TOLD };
struct full_table {
	int state;
	pid_t process;			/* the first one whose file was left out; may be torn */
};
static struct full_table full_share, full_files;

static bool has_key(const struct spile_user_file *file, const struct spile_file_key *key)
{
	return file->key.inode == key->inode && file->key.device == key->device &&
	       file->key.generation == key->generation;
}

static u32 share_of_current(void)
{
	/* File systems and io_uring act as others for a while: override_creds(). */
	kuid_t uid = current_real_cred()->uid;

	if (spile_owner_prefers(uid))
		return 0;
	return 1 + hash_32(__kuid_val(uid), 32) % (SHARES - 1);
}

static void give_share(u32 share)
{
	if (!share)
		return;
	atomic_dec(&user_shares[share].files);
	atomic_dec(&all_shares.files);
}

static bool take_share(u32 share)
{
	int own, all;

	if (!share)
		return true;
	own = atomic_inc_return(&user_shares[share].files);
	all = atomic_inc_return(&all_shares.files);
	if (own <= SHARE_FILES && all <= OTHERS_FILES)
		return true;
	give_share(share);
	return false;
}

static void note_full(struct full_table *full)
{
	if (likely(READ_ONCE(full->state) != FULL_NOT))
		return;
	WRITE_ONCE(full->process, task_tgid_nr(current));
	if (cmpxchg(&full->state, FULL_NOT, FULL_TO_TELL) == FULL_NOT)
		atomic_inc(&wanted_files);
}

/* The current task has a file of another user in its stack: it is no longer that user's. */
static void adopt(struct spile_user_file *file)
{
	if (share_of_current())
		return;
	give_share(xchg(&file->share, 0));
	WRITE_ONCE(file->awaited, false);
	WRITE_ONCE(file->refused, false);
}

/*
 * The entry of the key, which is created if there is none; NULL if that fails at the moment.
 * `by_hit`: the current task runs its code.
 */
static struct spile_user_file *entry_of(const struct spile_mapping *mapping, unsigned long address,
					bool by_hit)
{
	const struct spile_file_key *key = &mapping->key;
	u64 hash = key->inode * inode_factor +
		   ((u64)key->device << 32 | key->generation) * device_factor;
	u32 at = hash >> 48, step = hash >> 32 | 1, share, i;

	for (i = 0; i < FILE_PROBES; i++, at += step) {
		struct spile_user_file *file = &user_files[at % SPILE_FILES];
		/* Acquire: for its key; pairs with the release below. */
		int state = smp_load_acquire(&file->state);

		if (state == FILE_THERE) {
			if (!has_key(file, key))
				continue;
			if (unlikely(READ_ONCE(file->share)) && by_hit)
				adopt(file);
			return file;
		}
		/*
		 * Taken by another CPU, perhaps for the same key, which must not get two
		 * entries.
		 */
		if (state != FILE_FREE)
			return NULL;
		share = share_of_current();
		if (!take_share(share)) {
			note_full(&full_share);
			return NULL;
		}
		if (cmpxchg(&file->state, FILE_FREE, FILE_TAKEN) != FILE_FREE) {
			give_share(share);
			return NULL;
		}
		file->key = *key;
		file->share = share;
		file->process = task_tgid_nr(current);
		file->address = address;
		if (mapping->kind == SPILE_MAPPING_FILE)
			spile_mapping_path(mapping, file->path, sizeof(file->path));
		/* Release: for the fields above; pairs with the acquire above. */
		smp_store_release(&file->state, FILE_THERE);
		return file;
	}
	note_full(&full_files);
	return NULL;
}

/* False if it was requested recently. */
static bool request_table(struct spile_user_file *file, unsigned long address)
{
	u64 now = ktime_get_mono_fast_ns();

	if (READ_ONCE(file->table) || READ_ONCE(file->wanted) || READ_ONCE(file->refused) ||
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
		if (!(mapping.flags & VM_EXEC) || mapping.kind == SPILE_MAPPING_ANONYMOUS ||
		    mapping.kind == SPILE_MAPPING_VDSO_NARROW)
			continue;
		file = entry_of(&mapping, mapping.start, true);
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
	struct spile_user_file *file;

	if (!user_files || mapping->kind == SPILE_MAPPING_ANONYMOUS)
		return NULL;
	file = entry_of(mapping, address, true);
	/* For tell_what_is_full(). */
	if (unlikely(!file) && spile_user_files_wanted())
		spile_ring_call_reader(cpu);
	return file;
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

/*
 * The tables of all code of the process: its stacks will have more of it, and the task may have
 * ended when the loader reads the request. A process may have many files beyond the mappings that are
 * searched, and a stack through all of them.
 */
static void request_others(struct spile_cpu *cpu)
{
	u64 now = ktime_get_mono_fast_ns();

	if (cpu->files_requested_by == current->mm && now - cpu->files_requested < FILE_SEARCH_NS)
		return;
	cpu->files_requested = now;
	cpu->files_requested_by = current->mm;
	spile_user_files_request(cpu, NULL, 0);
}

const struct spile_unwind_table *spile_user_file_table(struct spile_cpu *cpu,
						       struct spile_user_file *file,
						       unsigned long address)
{
	/* Acquire: for the table's contents; pairs with the release in keep_table(). */
	const struct spile_unwind_table *table = smp_load_acquire(&file->table);

	if (unlikely(!table) && request_table(file, address)) {
		request_others(cpu);
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

static bool is_to_tell(struct full_table *full)
{
	if (READ_ONCE(full->state) != FULL_TO_TELL || xchg(&full->state, FULL_TOLD) == FULL_TOLD)
		return false;
	atomic_dec(&wanted_files);
	return true;
}

static void tell_what_is_full(void)
{
	if (is_to_tell(&full_share))
		spile_session_emit(
			SPILE_RECORD_WARN,
			"stacks: one user's programs have run code of more files than a session keeps for a user (%d), or those of all users but root and its own together, the first time in process %d; their further code has no names, and its callers are found by frame pointers alone: probe fewer processes, or restart the session",
			SHARE_FILES, full_share.process);
	if (is_to_tell(&full_files))
		spile_session_emit(
			SPILE_RECORD_WARN,
			"stacks: programs have run code of more files than a session keeps (%d), the first time in process %d; further code has no names, and its callers are found by frame pointers alone: probe fewer processes, or restart the session",
			SPILE_FILES, full_files.process);
}

int spile_user_files_next_wanted(struct spile_file *file)
{
	struct spile_user_file *found;
	u32 id;

	tell_what_is_full();
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
	struct user_share *share = &user_shares[READ_ONCE(file->share)];
	bool is_others = share != user_shares;
	size_t bytes = bytes_of(unwind);
	struct spile_unwind_table *table;

	if (!bytes)
		return -EINVAL;
	if (READ_ONCE(file->table))
		return -EEXIST;
	if (unwind_bytes + bytes > SPILE_UNWIND_MOST)
		return -ENOSPC;
	if (is_others && (share->unwind_bytes + bytes > SHARE_BYTES ||
			  all_shares.unwind_bytes + bytes > OTHERS_BYTES))
		return -EUSERS;
	if (bytes > spile_owner_left())
		return -EDQUOT;
	table = copy_table(unwind, bytes);
	if (IS_ERR(table))
		return PTR_ERR(table);
	unwind_bytes += bytes;
	if (is_others) {
		share->unwind_bytes += bytes;
		all_shares.unwind_bytes += bytes;
	}
	spile_session_charge(bytes);
	/* Release: for the table; pairs with the acquire in spile_user_file_table(). */
	smp_store_release(&file->table, table);
	return 0;
}

int spile_user_files_unwind(struct spile_unwind *unwind)
{
	static bool told;
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
	file = entry_of(&mapping, unwind->mapping, false);
	preempt_enable();
	if (!file)
		return -EAGAIN;
	unwind->id = spile_user_file_id(file);
	mutex_lock(&tables_lock);
	error = keep_table(file, unwind);
	/* Of one that could not be kept there will be none: nobody waits for it. */
	if (error && error != -EEXIST)
		WRITE_ONCE(file->awaited, true);
	if (error == -EUSERS) {
		WRITE_ONCE(file->refused, true);
		/* Or adopt() has cleared both before; pairs with its xchg(). */
		smp_mb();
		if (!READ_ONCE(file->share)) {
			WRITE_ONCE(file->awaited, false);
			WRITE_ONCE(file->refused, false);
		}
	}
	mutex_unlock(&tables_lock);
	if (!error || error == -EEXIST)
		spile_tables_added();
	if ((error == -EUSERS || error == -ENOSPC) && !xchg(&told, true))
		spile_session_emit(
			SPILE_RECORD_WARN,
			"stacks: the unwind tables of programs take more memory than a session has for them (%d MB, of which a user other than root and its own may have %d MB): in further files, the first of them in process %d, callers are found by frame pointers alone",
			SPILE_UNWIND_MOST >> 20, SHARE_BYTES >> 20, READ_ONCE(file->process));
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
	inode_factor = get_random_u64() | 1;
	device_factor = get_random_u64() | 1;
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
