// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A GNU build-id note (elf(5), NT_GNU_BUILD_ID): name size 4, id size, type 3, "GNU\0", id.
 * Linkers align it to 4 bytes. There is no section table in memory, so the note is found by its
 * first 16 bytes. Other data that looks like a note can only be taken for another build, never
 * for the right one.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "build_id.h"
#include "text.h"

enum {
	NOTE_ALIGN = 4,
	NOTE_HEADER = 16,
	NOTE_TYPE = 3,
};

char *spile_build_id_text(char *text, const unsigned char *id, unsigned int bytes)
{
	struct spile_text hex = spile_text_in(text, SPILE_BUILD_ID_TEXT);
	unsigned int i;

	if (!bytes)
		spile_text_literal(&hex, "none");
	for (i = 0; i < bytes; i++) {
		spile_text_number(&hex, id[i] >> 4, 16);
		spile_text_number(&hex, id[i] & 15, 16);
	}
	spile_text_end(&hex);
	return text;
}

bool spile_build_id_scan(const unsigned char *id, unsigned int id_bytes, const void *start,
			 size_t bytes, unsigned char *found, unsigned int *found_bytes)
{
	const char *at = PTR_ALIGN((const char *)start, NOTE_ALIGN);
	const char *end = (const char *)start + bytes;

	for (; at < end && (size_t)(end - at) >= NOTE_HEADER; at += NOTE_ALIGN) {
		const u32 *words = (const u32 *)at;

		if (words[0] != 4 || words[2] != NOTE_TYPE || memcmp(at + 12, "GNU", 4) ||
		    !words[1] || words[1] > SPILE_BUILD_ID_MAX ||
		    (size_t)(end - at) - NOTE_HEADER < words[1])
			continue;
		if (words[1] == id_bytes && !memcmp(at + NOTE_HEADER, id, words[1]))
			return true;
		*found_bytes = words[1];
		memcpy(found, at + NOTE_HEADER, words[1]);
	}
	return false;
}
