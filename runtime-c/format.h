/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Format bytecode (abi.h, enum spile_format_op) over a payload, into text. The
 * loader has the same in Rust; this one serves sprintf and its kin, where a
 * script needs the string in the kernel. Both must print alike.
 */
#ifndef SPILE_FORMAT_H
#define SPILE_FORMAT_H

#include "text.h"

struct spile_description;

/*
 * Formats into out (bytes of room, at least 1) and returns the length without
 * the NUL. The format has objects by the numbers of their descriptions. A payload or
 * bytecode that ends early ends the text. Any context; bounded by format_bytes and bytes.
 */
unsigned int spile_format_render(const unsigned char *format, unsigned int format_bytes,
				 const struct spile_description *descriptions,
				 unsigned int description_count, const char *payload,
				 const char *payload_end, char *out, unsigned int bytes);

#endif
