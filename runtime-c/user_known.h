/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the last walks of user stacks on a CPU have found: mappings of one process, and for
 * addresses of its code the place and the rule. Most stacks consist of frames of earlier ones.
 *
 * It holds as long as the process's page tables have lost nothing (spile_maps_version()). Code
 * that has run since then is in memory, so it cannot be unmapped, moved or replaced without that. A
 * frame whose page is not in memory may be named as what was there before.
 * New mappings do not matter: only what was found is kept, not that nothing was.
 */
#ifndef SPILE_USER_KNOWN_H
#define SPILE_USER_KNOWN_H

#include <linux/types.h>

#include "user_files.h"
#include "user_maps.h"

enum {
	SPILE_WALK_MAPPINGS = 8,
	SPILE_WALK_STEP_BITS = 8,
};

struct spile_walk_mapping {
	struct spile_mapping mapping;
	struct spile_user_file *file;
	u64 file_place;			/* of the file's first byte */
};

/* A frame's place, and the rule that leads to its caller. */
struct spile_walk_step {
	u64 key;
	u64 generation;
	u64 place;
	struct spile_unwind_rule rule;
};

/* In zeroed memory of a CPU; used by the owner of its context. */
struct spile_user_known {
	struct spile_maps_version version;
	u64 generation;			/* steps of others are invalid */
	/* When there is no room, a new mapping replaces the first. */
	unsigned int mapping_count;
	struct spile_walk_mapping mappings[SPILE_WALK_MAPPINGS];
	struct spile_walk_step steps[1 << SPILE_WALK_STEP_BITS];
};

/* Forgets everything. */
static inline void spile_user_known_forget(struct spile_user_known *known)
{
	known->version = (struct spile_maps_version){};
	known->generation++;
	known->mapping_count = 0;
}

/* Forgets what is not of the current task's process as it is now. */
static inline void spile_user_known_begin(struct spile_user_known *known)
{
	struct spile_maps_version now = spile_maps_version();

	if (likely(known->version.process == now.process &&
		   known->version.losses == now.losses && now.process))
		return;
	spile_user_known_forget(known);
	known->version = now;
}

/* User addresses have their highest bit clear. */
static inline u64 spile_walk_key(unsigned long pc, bool returns)
{
	return (u64)pc << 1 | returns;
}

/* Where the step with the key is, or may be put. */
static inline struct spile_walk_step *spile_walk_step(struct spile_user_known *known, u64 key)
{
	return &known->steps[key * 0x9e3779b97f4a7c15ull >> (64 - SPILE_WALK_STEP_BITS)];
}

#endif
