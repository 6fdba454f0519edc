/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_FLOAT_TEXT_H
#define SPILE_FLOAT_TEXT_H

#include "portable.h"

enum {
	SPILE_FLOAT_DIGITS = 320,	/* before the point, and one more for a carry */
	SPILE_FLOAT_PRETTY = 6,		/* digits after it in objects, as printf("%f") has */
	/* with the sign, the point and the NUL: the longest number in an object */
	SPILE_FLOAT_PRETTY_BYTES = SPILE_FLOAT_DIGITS + SPILE_FLOAT_PRETTY + 3,
};

/*
 * Writes a number with a binary point in decimal, rounded to the nearest, ties to even, with a NUL.
 * `bits`: IEEE 754 binary64, or binary32 if `size` is 4. `precision`: digits after the point, 1080
 * at most. `room`: bytes at `out`. Returns the length. Any context; bounded by some 1100 digits.
 */
unsigned int spile_float_text(__u64 bits, unsigned int size, unsigned int precision, char *out,
			      unsigned int room);

#endif
