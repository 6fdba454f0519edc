// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Addresses as text.
 */
#include <linux/bitops.h>
#include <linux/byteorder/generic.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "features.h"
#include "hex_text.h"

/* Writes eight digits. */
static void put_digits(char *out, u32 value)
{
	const u64 ones = 0x0101010101010101ull;
	u64 digits = value;
	__be64 text;

	digits = (digits | digits << 16) & 0x0000ffff0000ffffull;
	digits = (digits | digits << 8) & 0x00ff00ff00ff00ffull;
	digits = (digits | digits << 4) & 0x0f0f0f0f0f0f0f0full;
	/* Digits from ten on become letters. */
	text = cpu_to_be64(digits + '0' * ones +
			   (((digits + 6 * ones) >> 4) & ones) * ('a' - '0' - 10));
	memcpy(out, &text, sizeof(text));
}

unsigned int spile_hex_bytes(unsigned long value)
{
	return 2 + (value ? (fls64(value) + 3) / 4 : 1);
}

void spile_put_hex(char *out, unsigned long value)
{
	unsigned int bytes = spile_hex_bytes(value), i;

	out[0] = '0';
	out[1] = 'x';
	/* Fast path for kernel addresses: keys may consist of whole stacks of them. */
	if (bytes == 2 + 16) {
		put_digits(out + 2, value >> 32);
		put_digits(out + 10, value);
		return;
	}
	for (i = bytes - 1; i > 1; i--, value >>= 4)
		out[i] = hex_asc_lo(value);
}
