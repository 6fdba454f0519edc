/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects as $x$ and $x$$ print them: a description (abi.h, enum
 * spile_pretty_op) is walked twice, once when the record is written, to fetch the strings
 * that the object points to (pretty_record.c), and once when it becomes text (here, or in
 * the loader). Both walks visit the pointers in the same order.
 */
#ifndef SPILE_PRETTY_H
#define SPILE_PRETTY_H

#include "payload.h"
#include "text.h"

enum {
	SPILE_PRETTY_DEPTH = 8,		/* nested REPEATs; deeper ones end the walk */
	SPILE_PRETTY_ELEMENTS = 65536,	/* elements of all REPEATs together; more end the walk */
};

/* One operation met on a walk. */
struct spile_pretty_item {
	unsigned char op;		/* enum spile_pretty_op, never END or REPEAT */
	bool separator;			/* ", " precedes it: a new element of a REPEAT */
	unsigned long offset;	/* of a number or text: from the object's start */
	unsigned long second;	/* TEXT: of its length */
	const unsigned char *operands;	/* after the op byte */
	/*
	 * LITERAL: of the text at operands + 2; CHARS: of the array; ENUM: of names, operands + 10;
	 * STRING_POINTER, TEXT: of the pointer, 4 or 8; WHEN: of the body, whose items follow
	 */
	__u32 length;
};

struct spile_pretty_walk {
	struct spile_code code;
	unsigned int depth;
	struct {
		const unsigned char *body, *body_end, *outer_end;
		unsigned long base;	/* of the current element */
		__u32 left;		/* elements after it */
		__u32 stride;
	} level[SPILE_PRETTY_DEPTH];
	unsigned long base;
	unsigned int elements;	/* visited so far */
	bool separator;
	bool user;		/* the object is in the memory of the current process */
	unsigned char pointer;	/* bytes of a pointer: 4 or 8 */
};

/*
 * Begins a walk; *object_bytes gets the size of the raw object. False for a
 * description too short to have one.
 */
bool spile_pretty_begin(struct spile_pretty_walk *walk, const unsigned char *description,
			unsigned int description_bytes, __u32 *object_bytes);
/* Next operation; false at the end and at anything malformed. */
bool spile_pretty_next(struct spile_pretty_walk *walk, struct spile_pretty_item *item);

/* Whether it has a part of the payload: text that the object points to. */
static inline bool spile_pretty_points(const struct spile_pretty_item *item)
{
	return item->op == SPILE_PRETTY_STRING_POINTER || item->op == SPILE_PRETTY_TEXT;
}

/* The pointer or length of such an item, which is at these bytes of the object. */
static inline __u64 spile_pretty_pointer(const void *at, const struct spile_pretty_item *item)
{
	return item->length == 4 ? spile_get_u32(at) : spile_get_u64(at);
}

/* Text of the pretty part at the payload's front. False when there is none. */
bool spile_pretty_render(struct spile_text *text, const unsigned char *description,
			 unsigned int description_bytes, struct spile_payload *payload);

#endif
