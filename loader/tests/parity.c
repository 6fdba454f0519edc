/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The module's side of parity.rs: formats what comes in, writes what comes out.
 * In, until the end: u32 room, u32 number of descriptions, descriptions, format,
 * payload, each after its u32 length. Out: u32 length, text.
 */
#include <stdio.h>
#include <stdlib.h>

#include "format.h"
#include "script.h"

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
		unsigned int room = get_number(), count = get_number(), i;
		struct spile_description *descriptions = calloc(count, sizeof(*descriptions));
		unsigned int format_bytes, payload_bytes, length;
		char *format, *payload, *out = malloc(room);

		for (i = 0; i < count; i++)
			descriptions[i].code =
				(unsigned char *)get_bytes(&descriptions[i].bytes);
		format = get_bytes(&format_bytes);
		payload = get_bytes(&payload_bytes);
		length = spile_format_render((unsigned char *)format, format_bytes, descriptions,
					     count, payload, payload + payload_bytes, out, room);
		fwrite(&length, sizeof(length), 1, stdout);
		fwrite(out, length, 1, stdout);
		free(out);
		free(payload);
		free(format);
		for (i = 0; i < count; i++)
			free((void *)descriptions[i].code);
		free(descriptions);
	}
}
