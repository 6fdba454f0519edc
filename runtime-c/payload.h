/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading a record's payload part by part (abi.h, "Payloads"). Every part is a
 * multiple of 8 bytes; false means that there is none left. Compiles in user
 * space too.
 */
#ifndef SPILE_PAYLOAD_H
#define SPILE_PAYLOAD_H

#include "portable.h"

struct spile_payload {
	const char *at;
	const char *end;
};

static inline bool spile_payload_long(struct spile_payload *payload, __s64 *value)
{
	if (payload->end - payload->at < 8)
		return false;
	*value = (__s64)spile_get_u64(payload->at);
	payload->at += 8;
	return true;
}

/*
 * String or memory part. *count is SPILE_FAULT, with no bytes, for memory that
 * could not be read.
 */
static inline bool spile_payload_bytes(struct spile_payload *payload, const char **bytes,
				       __u32 *count)
{
	size_t room = payload->end - payload->at;
	__u64 part;

	if (room < 8)
		return false;
	*count = spile_get_u32((const unsigned char *)payload->at);
	*bytes = payload->at + 4;
	part = *count == SPILE_FAULT ? 8 : ((__u64)*count + 4 + 7) & ~7ull;
	if (part > room)
		return false;
	payload->at += part;
	return true;
}

#endif
