/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The module's side of parity.rs: formats what comes in, writes what comes out.
 * In, until the end: u32 room, u32 length of format, format, u32 length of
 * payload, payload. Out: u32 length, text.
 */
#include <stdio.h>
#include <stdlib.h>

#include "format.h"

static unsigned int get_number(void)
{
	unsigned int number;

	if (fread(&number, sizeof(number), 1, stdin) != 1)
		exit(0);
	return number;
}

/* In memory of its own size, so that the sanitizer sees every read behind it. */
static char *get_bytes(unsigned int *count)
{
	char *bytes;

	*count = get_number();
	bytes = malloc(*count);
	if (*count && fread(bytes, *count, 1, stdin) != 1)
		exit(1);
	return bytes;
}

int main(void)
{
	for (;;) {
		unsigned int room = get_number(), format_bytes, payload_bytes, length;
		char *format = get_bytes(&format_bytes);
		char *payload = get_bytes(&payload_bytes);
		char *out = malloc(room);

		length = spile_format_render((unsigned char *)format, format_bytes,
					     payload, payload + payload_bytes, out, room);
		fwrite(&length, sizeof(length), 1, stdout);
		fwrite(out, length, 1, stdout);
		free(out);
		free(payload);
		free(format);
	}
}
