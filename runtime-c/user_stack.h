/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_USER_STACK_H
#define SPILE_USER_STACK_H

#include <linux/types.h>

struct spile_context;

/* A frame of a user stack with its place (abi.h, SPILE_PLACE_SHIFT), as in records. */
struct spile_user_frame {
	u64 address;
	u64 place;
};

/* The text of a frame in a stack that is a value, as it was made before. */
struct spile_frame_text {
	struct spile_user_frame frame;
	u32 length;			/* 0: none */
	char text[44];
};

enum { SPILE_FRAME_TEXT_BITS = 7, SPILE_FRAME_TEXTS = 1 << SPILE_FRAME_TEXT_BITS };

struct spile_user_known;
unsigned int spile_user_known_bytes(void);

/*
 * The user stack of the current task: its current instruction, or the one at which it will
 * continue, then return addresses. It is unwound by the tables of the files (user_files.h), and
 * by frame pointers in files without one. It ends at a frame that is not in executable memory.
 * Taken once in a handler's run. 0 frames in kernel threads. Owner of the context; bounded by
 * spile_script.stack_frames steps.
 */
unsigned int spile_stack_user(struct spile_context *c, const struct spile_user_frame **frames);
/* The same from these registers on. Walked again each time. */
unsigned int spile_stack_user_from(struct spile_context *c, unsigned long pc, unsigned long sp,
				   unsigned long fp, const struct spile_user_frame **frames);

/* As spile_put_stack(), of the user stack (builtin_user_stack.c). */
char *spile_put_user_addresses(struct spile_context *c, char *at, long long first, long long most);

/* The place of an address of the current task. Owner of the context. */
u64 spile_user_place(struct spile_context *c, unsigned long address);

#endif
