// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers with a binary point (IEEE 754 binary64, held in the bits of a
 * spile_long), by integer arithmetic: handlers may not touch the registers of
 * the floating point unit. Results are the nearest number, ties to even.
 *
 * Any context. Bounds: 2100 turns (remainder), some 1100 digits (text).
 */
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/types.h>

#include "script.h"
#include "builtins.h"
#include "float_text.h"
#include "memory.h"

enum {
	FLOAT_BIAS = 1023,
	FLOAT_SPECIAL = 0x7ff,	/* exponent of infinities and NaN */
	FLOAT_FRACTION = 52,	/* bits of the fraction */
	/* bit of a significand's leading 1: above is room for a carry, below for rounding */
	FLOAT_TOP = 62,
	FLOAT_REST = FLOAT_TOP - FLOAT_FRACTION,
};

#define FLOAT_NAN 0x7ff8000000000000ULL
#define FLOAT_SIGN 0x8000000000000000ULL

/* The value is sig / 2^62 * 2^(exponent - FLOAT_BIAS); sig is 0 for zero. */
struct floating {
	u64 sig;
	int exponent;
	bool negative;
};

static bool float_is_nan(u64 a)
{
	return (a & ~FLOAT_SIGN) > (u64)FLOAT_SPECIAL << FLOAT_FRACTION;
}

static bool float_is_infinite(u64 a)
{
	return (a & ~FLOAT_SIGN) == (u64)FLOAT_SPECIAL << FLOAT_FRACTION;
}

/* Of either sign. */
static bool float_is_zero(u64 a)
{
	return (a & ~FLOAT_SIGN) == 0;
}

static u64 float_infinity(bool negative)
{
	return ((u64)FLOAT_SPECIAL << FLOAT_FRACTION) | (negative ? FLOAT_SIGN : 0);
}

/* Of a finite number. */
static struct floating float_take(u64 a)
{
	struct floating f = { .negative = a >> 63,
			      .exponent = a >> FLOAT_FRACTION & FLOAT_SPECIAL };
	int up;

	f.sig = a & ((1ULL << FLOAT_FRACTION) - 1);
	if (f.exponent) {
		f.sig = (f.sig | 1ULL << FLOAT_FRACTION) << FLOAT_REST;
	} else if (f.sig) {
		up = FLOAT_TOP + 1 - fls64(f.sig);
		f.sig <<= up;
		f.exponent = 1 + FLOAT_REST - up;
	}
	return f;
}

/* To the right; the lowest bit is set if a 1 was shifted out. */
static u64 float_shift(u64 sig, int bits)
{
	if (bits <= 0)
		return sig;
	if (bits > 63)
		return sig != 0;
	return sig >> bits | ((sig << (64 - bits)) != 0);
}

static u64 float_make(bool negative, int exponent, u64 sig)
{
	u64 sign = negative ? FLOAT_SIGN : 0;
	unsigned int rest;
	int up;

	if (!sig)
		return sign;
	up = FLOAT_TOP + 1 - fls64(sig);
	sig = up < 0 ? float_shift(sig, 1) : sig << up;
	exponent -= up;
	if (exponent >= FLOAT_SPECIAL)
		return float_infinity(negative);
	if (exponent <= 0) {
		sig = float_shift(sig, 1 - exponent);
		exponent = 0;
	}
	rest = sig & ((1 << FLOAT_REST) - 1);
	sig >>= FLOAT_REST;
	if (rest > 1 << (FLOAT_REST - 1) || (rest == 1 << (FLOAT_REST - 1) && (sig & 1)))
		sig++;
	/* The leading 1 of sig adds one to the exponent, and so does a carry of the rounding. */
	return sign | (sig + (exponent ? (u64)(exponent - 1) << FLOAT_FRACTION : 0));
}

spile_long spile_fn_fp_add(struct spile_context *c, spile_long x, spile_long y)
{
	struct floating a, b, swap;

	if (float_is_nan(x) || float_is_nan(y) ||
	    (float_is_infinite(x) && float_is_infinite(y) && x != y))
		return FLOAT_NAN;
	if (float_is_infinite(x))
		return x;
	if (float_is_infinite(y))
		return y;
	a = float_take(x);
	b = float_take(y);
	if (!a.sig)
		return b.sig || (a.negative && b.negative) ? y : 0;
	if (!b.sig)
		return x;
	if (a.exponent < b.exponent || (a.exponent == b.exponent && a.sig < b.sig)) {
		swap = a;
		a = b;
		b = swap;
	}
	b.sig = float_shift(b.sig, a.exponent - b.exponent);
	if (a.negative == b.negative)
		return float_make(a.negative, a.exponent, a.sig + b.sig);
	return a.sig == b.sig ? 0 : float_make(a.negative, a.exponent, a.sig - b.sig);
}

spile_long spile_fn_fp_sub(struct spile_context *c, spile_long x, spile_long y)
{
	return spile_fn_fp_add(c, x, float_is_nan(y) ? y : (spile_long)(y ^ FLOAT_SIGN));
}

spile_long spile_fn_fp_mul(struct spile_context *c, spile_long x, spile_long y)
{
	bool negative = (x ^ y) < 0;
	struct floating a, b;
	unsigned __int128 product;

	if (float_is_nan(x) || float_is_nan(y))
		return FLOAT_NAN;
	if (float_is_infinite(x) || float_is_infinite(y))
		return float_is_zero(x) || float_is_zero(y) ? FLOAT_NAN : float_infinity(negative);
	a = float_take(x);
	b = float_take(y);
	product = (unsigned __int128)a.sig * b.sig;
	return float_make(negative, a.exponent + b.exponent - FLOAT_BIAS,
			  (u64)(product >> FLOAT_TOP) | (((u64)product << (64 - FLOAT_TOP)) != 0));
}

spile_long spile_fn_fp_div(struct spile_context *c, spile_long x, spile_long y)
{
	bool negative = (x ^ y) < 0;
	struct floating a, b;
	u64 rest, quotient = 0;
	int bit;

	if (float_is_nan(x) || float_is_nan(y) || (float_is_infinite(x) && float_is_infinite(y)))
		return FLOAT_NAN;
	if (float_is_infinite(x))
		return float_infinity(negative);
	if (float_is_infinite(y))
		return negative ? FLOAT_SIGN : 0;
	a = float_take(x);
	b = float_take(y);
	if (!b.sig)
		return a.sig ? float_infinity(negative) : FLOAT_NAN;
	rest = a.sig;
	for (bit = 0; bit <= FLOAT_TOP; bit++) {
		quotient <<= 1;
		if (rest >= b.sig) {
			rest -= b.sig;
			quotient |= 1;
		}
		rest <<= 1;
	}
	return float_make(negative, a.exponent - b.exponent + FLOAT_BIAS, quotient | (rest != 0));
}

/* x - n * y, n the whole number nearest to x / y: at most half of y, of either sign. */
spile_long spile_fn_fp_rem(struct spile_context *c, spile_long x, spile_long y)
{
	struct floating a, b;
	u64 rest, whole, odd = 0;
	int distance;

	if (float_is_nan(x) || float_is_nan(y) || float_is_infinite(x) || float_is_zero(y))
		return FLOAT_NAN;
	if (float_is_infinite(y))
		return x;
	a = float_take(x);
	b = float_take(y);
	distance = a.exponent - b.exponent;
	if (!a.sig || distance < -1)
		return x;
	/* In units of half the lowest bit of y. */
	rest = a.sig >> FLOAT_REST;
	whole = b.sig >> FLOAT_REST << 1;
	if (distance >= 0) {
		for (;; distance--) {
			odd = rest >= whole >> 1;
			if (odd)
				rest -= whole >> 1;
			if (!distance)
				break;
			rest <<= 1;
		}
		rest <<= 1;
	}
	if (rest > whole >> 1 || (rest == whole >> 1 && odd)) {
		rest = whole - rest;
		a.negative = !a.negative;
	}
	return float_make(a.negative, b.exponent, rest << (FLOAT_REST - 1));
}

spile_long spile_fn_fp_sqrt(struct spile_context *c, spile_long x)
{
	struct floating a;
	unsigned __int128 square, part;
	u64 root = 0;
	int bit, power;

	if (float_is_nan(x) || float_is_zero(x))
		return float_is_nan(x) ? (spile_long)FLOAT_NAN : x;
	if (x < 0)
		return FLOAT_NAN;
	if (float_is_infinite(x))
		return x;
	a = float_take(x);
	power = a.exponent - FLOAT_BIAS;
	square = (unsigned __int128)a.sig << (FLOAT_TOP + (power & 1));
	for (bit = FLOAT_TOP; bit >= 0; bit--) {
		part = root | 1ULL << bit;
		if (part * part <= square)
			root = part;
	}
	part = root;
	return float_make(false, (power - (power & 1)) / 2 + FLOAT_BIAS,
			  root | (part * part != square));
}

/* Orders numbers as their bits: the lower the smaller, both zeros the same. */
static spile_long float_order(u64 a)
{
	return (spile_long)a < 0 ? -(spile_long)(a & ~FLOAT_SIGN) : (spile_long)a;
}

spile_long spile_fn_fp_eq(struct spile_context *c, spile_long x, spile_long y)
{
	return !float_is_nan(x) && !float_is_nan(y) && float_order(x) == float_order(y);
}

spile_long spile_fn_fp_le(struct spile_context *c, spile_long x, spile_long y)
{
	return !float_is_nan(x) && !float_is_nan(y) && float_order(x) <= float_order(y);
}

spile_long spile_fn_fp_lt(struct spile_context *c, spile_long x, spile_long y)
{
	return !float_is_nan(x) && !float_is_nan(y) && float_order(x) < float_order(y);
}

spile_long spile_fn_long_to_fp(struct spile_context *c, spile_long number)
{
	return float_make(number < 0, FLOAT_BIAS + FLOAT_TOP,
			  number < 0 ? 0 - (u64)number : (u64)number);
}

spile_long spile_fn_fp32_to_fp64(struct spile_context *c, spile_long bits)
{
	u32 a = bits, fraction = a & 0x7fffff;
	bool negative = a >> 31;
	int exponent = a >> 23 & 0xff;

	if (exponent == 0xff)
		return fraction ? FLOAT_NAN : float_infinity(negative);
	return float_make(negative, (exponent ? exponent : 1) - 127 + FLOAT_BIAS,
			  (u64)(fraction | (exponent ? 0x800000 : 0)) << (FLOAT_TOP - 23));
}

/*
 * Rounding modes: 0 nearest, ties to even; 1 towards zero; 2 down; 3 up; 4 nearest,
 * ties away from zero; 6 to odd. A value out of the range of 64 bits becomes the
 * nearest in it; NaN becomes the lowest. Inexact results are not reported: `exact` has
 * no effect.
 */
spile_long spile_fn_fp_to_long(struct spile_context *c, spile_long x, spile_long rounding,
			       spile_long exact)
{
	struct floating a;
	u64 whole, rest, half = 1ULL << 63;
	bool up = false;
	int power;

	if (float_is_nan(x))
		return (spile_long)FLOAT_SIGN;
	a = float_take(float_is_infinite(x) ?
			       (x & FLOAT_SIGN) | (u64)(FLOAT_SPECIAL - 1) << FLOAT_FRACTION :
			       (u64)x);
	power = a.exponent - FLOAT_BIAS;
	if (a.sig && power >= 63)
		return a.negative ? (spile_long)FLOAT_SIGN : (spile_long)~FLOAT_SIGN;
	/* rest: the fraction, its first bit the highest. */
	if (!a.sig || power < -1) {
		whole = 0;
		rest = a.sig != 0;
	} else {
		whole = power < 0 ? 0 : a.sig >> (FLOAT_TOP - power);
		rest = power == FLOAT_TOP ? 0 : a.sig << (power + 2);
	}
	switch (rounding) {
	case 0:
		up = rest > half || (rest == half && (whole & 1));
		break;
	case 2:
		up = rest && a.negative;
		break;
	case 3:
		up = rest && !a.negative;
		break;
	case 4:
		up = rest >= half;
		break;
	case 6:
		up = rest && !(whole & 1);
		break;
	}
	whole += up;
	return a.negative ? (spile_long)(0 - whole) : (spile_long)whole;
}

enum { FLOAT_BEHIND = 1080 };	/* digits after the point: no number has more */

unsigned int spile_fn_fp_to_string(struct spile_context *c, spile_long x, spile_long precision,
				   char *out)
{
	return spile_float_text(x, 8, clamp_t(spile_long, precision, 0, FLOAT_BEHIND), out,
				spile_script.string_bytes);
}

enum { SCALE_WORDS = 40 };	/* of 32 bits */

/* sig * 10^power to the nearest number. */
static u64 float_scale(bool negative, u64 sig, int power, bool more)
{
	u32 words[SCALE_WORDS];
	int at, top, base;
	u64 carry, high;
	u32 rest;

	if (!sig || power < -400)
		return negative ? FLOAT_SIGN : 0;
	if (power > 330)
		return float_infinity(negative);
	memset(words, 0, sizeof(words));
	/*
	 * A whole number of 40 words: at the low end to be multiplied, at the high end
	 * to be divided.
	 */
	base = power < 0 ? SCALE_WORDS - 2 : 0;
	words[base] = sig;
	words[base + 1] = sig >> 32;
	for (; power > 0; power--) {
		for (at = 0, carry = 0; at < SCALE_WORDS; at++) {
			carry += (u64)words[at] * 10;
			words[at] = carry;
			carry >>= 32;
		}
		if (carry)
			return float_infinity(negative);
	}
	for (; power < 0; power++) {
		for (at = SCALE_WORDS - 1, carry = 0; at >= 0; at--) {
			carry = carry << 32 | words[at];
			words[at] = div_u64_rem(carry, 10, &rest);
			carry = rest;
		}
		more |= carry != 0;
	}
	for (top = SCALE_WORDS - 1; top > 0 && !words[top]; top--)
		;
	/* The highest 63 bits and whether there is a 1 below. */
	high = 0;
	for (at = 0; at <= FLOAT_TOP; at++) {
		int bit = 32 * top + fls(words[top]) - 1 - at;

		high = high << 1 | (bit >= 0 && (words[bit / 32] >> (bit % 32) & 1));
		if (at == FLOAT_TOP)
			for (bit--; bit >= 0 && !more; bit--)
				more = words[bit / 32] >> (bit % 32) & 1;
	}
	return float_make(negative, 32 * (top - base) + fls(words[top]) - 1 + FLOAT_BIAS,
			  high | more);
}

/*
 * Parses C's decimal notation, up to the first other character. After 19 digits it only
 * matters whether any further digit is not zero.
 */
spile_long spile_fn_string_to_fp(struct spile_context *c, struct spile_string text)
{
	const char *at = text.text, *end = at + text.length;
	bool negative = false, point = false, more = false;
	int power = 0, exponent = 0;
	u64 sig = 0;

	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n'))
		at++;
	if (at < end && (*at == '-' || *at == '+'))
		negative = *at++ == '-';
	for (; at < end && (*at == '.' || (*at >= '0' && *at <= '9')); at++) {
		if (*at == '.') {
			if (point)
				break;
			point = true;
		} else if (sig < 1000000000000000000ULL) {
			sig = sig * 10 + (*at - '0');
			power -= point;
		} else {
			more |= *at != '0';
			power += !point;
		}
	}
	if (end - at > 1 && (*at == 'e' || *at == 'E')) {
		bool down = at[1] == '-';

		for (at += at[1] == '-' || at[1] == '+' ? 2 : 1;
		     at < end && *at >= '0' && *at <= '9'; at++)
			exponent = min(exponent * 10 + (*at - '0'), 100000);
		power += down ? -exponent : exponent;
	}
	return float_scale(negative, sig, power, more);
}
