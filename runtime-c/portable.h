/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files that also compile in user space (format.c, pretty.c, their
 * test) need from either world: fixed-width types, memory functions, and the
 * little-endian unaligned reads that bytecode is made of.
 */
#ifndef SPILE_PORTABLE_H
#define SPILE_PORTABLE_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/string.h>
#else
#include <linux/types.h>
#include <stdbool.h>
#include <string.h>
#endif

#include "abi/abi.h"

static inline __u16 spile_get_u16(const unsigned char *at)
{
	__u16 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline __u32 spile_get_u32(const unsigned char *at)
{
	__u32 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline __u64 spile_get_u64(const void *at)
{
	__u64 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Bytecode being read. Whoever reads checks `at < end` before an operation and
 * with spile_code_has() before its operands: a short one ends the reading. */
struct spile_code {
	const unsigned char *at;
	const unsigned char *end;
};

static inline bool spile_code_has(const struct spile_code *code, size_t bytes)
{
	return (size_t)(code->end - code->at) >= bytes;
}

#endif
