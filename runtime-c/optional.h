/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions that a module has only if its script needs them: a reference by spile_optional()
 * does not keep a function in the module (kbuild/src/prune), and is NULL if nothing else does.
 * What keeps them are parts (optional.c), which the script names by SPILE_NEEDS().
 */
#ifndef SPILE_OPTIONAL_H
#define SPILE_OPTIONAL_H

#include <linux/compiler.h>

/* References from this section keep nothing. */
#define SPILE_KEEPS_NOTHING __section(".rodata.spile_optional")

/* The function, or NULL. Not for code that runs at each hit: the call is an indirect one. */
#define spile_optional(function) ({ \
	static typeof(function) *const spile_at SPILE_KEEPS_NOTHING = function; \
	READ_ONCE(spile_at); \
})

/* Calls a function that returns nothing, if it is there. */
#define spile_call_if_there(function, ...) do { \
	typeof(function) *const spile_there = spile_optional(function); \
	if (spile_there) \
		spile_there(__VA_ARGS__); \
} while (0)

/* Calls a function, or has this value instead. */
#define spile_call_or(instead, function, ...) ({ \
	typeof(function) *const spile_there = spile_optional(function); \
	spile_there ? spile_there(__VA_ARGS__) : (instead); \
})

#endif
