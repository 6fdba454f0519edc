/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files whose code is in user stacks (abi.h, "Stacks of user space"): their numbers, and the
 * tables that the loader makes for them. Entries stay until the end of the session.
 */
#ifndef SPILE_USER_FILES_H
#define SPILE_USER_FILES_H

#include <linux/types.h>

#include "user_maps.h"
#include "abi/abi.h"

struct spile_cpu;
struct spile_unwind_table;

struct spile_user_file {
	/* FILE_FREE, then FILE_TAKEN by one CPU, then FILE_THERE permanently (acquire) */
	int state;
	int wanted;			/* SPILE_WANTED reports it; set and taken by xchg */
	bool awaited;			/* a task has waited for its table in vain */
	bool refused;			/* its table is beyond its user's share */
	u32 share;			/* of which user it is; 0: of root or of the owner */
	struct spile_file_key key;
	/* Where it was seen; written by hits, may be torn. */
	pid_t process;
	unsigned long address;
	u64 asked;			/* ns: when it was last asked for */
	const struct spile_unwind_table *table;	/* set once (acquire); NULL: not yet */
	char path[SPILE_FILE_PATH];
};

struct spile_unwind_table {
	u32 rule_count;
	u32 place_count;
	const struct spile_unwind_rule *rules;
	const u32 *places;
	const u16 *indices;
	u32 build_id_bytes;
	u8 build_id[20];
};

/*
 * The file of a mapping of the current task; NULL: it has none, or there are too many
 * files (one user cannot take the room of others). `address` is in it. Owner of the context.
 */
struct spile_user_file *spile_user_file(struct spile_cpu *cpu, const struct spile_mapping *mapping,
					unsigned long address);
/* The file's number, from 1 on. */
u32 spile_user_file_id(const struct spile_user_file *file);
/* The file with that number; NULL: none. Any context. */
struct spile_user_file *spile_user_file_with(u32 id);

/* Its table; NULL if there is none yet, in which case it is requested. Owner of the context. */
const struct spile_unwind_table *spile_user_file_table(struct spile_cpu *cpu,
						       struct spile_user_file *file,
						       unsigned long address);
/* The rule for that offset in its table; NULL: nothing is known about the code there. Any context. */
const struct spile_unwind_rule *spile_unwind_rule_at(const struct spile_user_file *file,
						     const struct spile_unwind_table *table,
						     u64 offset);

/*
 * Requests the tables of all code of the current process that has none. Returns how many these are,
 * `most` at most, and puts them into `missing`. Preemption is off.
 */
unsigned int spile_user_files_request(struct spile_cpu *cpu, struct spile_user_file **missing,
				      unsigned int most);
/* Called when a table has been added, by the program that makes them. Process context. */
void spile_tables_added(void);

/* Whether SPILE_WANTED would report a file. */
bool spile_user_files_wanted(void);
/* The ioctls. Process context; `file` and `unwind` are the kernel's copies. */
int spile_user_files_find(struct spile_file *file);
int spile_user_files_next_wanted(struct spile_file *file);
int spile_user_files_unwind(struct spile_unwind *unwind);

int __must_check spile_user_files_init(void);
void spile_user_files_exit(void);

#endif
