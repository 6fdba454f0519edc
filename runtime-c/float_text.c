// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers with a binary point as decimal text, by integer arithmetic. Compiles in user space too.
 */
#include "float_text.h"

/*
 * Words of 32 bits: enough for the whole part of the largest number and for the fraction of the
 * smallest.
 */
enum { FLOAT_WORDS = 36 };

/* A finite number: sig * 2^power. */
struct float_parts {
	__u64 sig;
	int power;
};

/* Its sign is left out. `fraction_bits` and `exponent_bits`: of the format. */
static struct float_parts take_parts(__u64 bits, unsigned int fraction_bits,
				     unsigned int exponent_bits)
{
	__u64 sig = bits & ((1ull << fraction_bits) - 1);
	int exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1);
	int bias = (1 << (exponent_bits - 1)) - 1;

	if (exponent)
		sig |= 1ull << fraction_bits;
	else
		exponent = 1;
	return (struct float_parts){ sig, exponent - bias - (int)fraction_bits };
}

/* Stores sig * 2^power in words, lowest first; bits outside of them are dropped. */
static void float_spread(__u32 *words, __u64 sig, int power)
{
	int bit;

	memset(words, 0, FLOAT_WORDS * sizeof(*words));
	for (bit = 0; sig >> bit; bit++) {
		int at = power + bit;

		if (sig >> bit & 1 && at >= 0 && at < 32 * FLOAT_WORDS)
			words[at / 32] |= 1U << (at % 32);
	}
}

/*
 * One more in the last place of the text [from, to), its point stepped over; true where
 * that takes one more digit.
 */
static bool float_carry(char *from, char *to)
{
	while (to-- > from) {
		if (*to == '.')
			continue;
		if (*to != '9') {
			(*to)++;
			return false;
		}
		*to = '0';
	}
	return true;
}

/* Digits of the words' whole number, most significant first. */
static unsigned int float_whole(__u32 *words, char *out, unsigned int most)
{
	unsigned int digits = 0, used = FLOAT_WORDS, low;

	do {
		__u32 rest = 0;
		int at;

		while (used && !words[used - 1])
			used--;
		for (at = used - 1; at >= 0; at--) {
			__u64 value = (__u64)rest << 32 | words[at];

			words[at] = value / 10;
			rest = value % 10;
		}
		out[digits++] = '0' + rest;
	} while (used && (used > 1 || words[0]) && digits < most);
	for (low = 0; low < digits / 2; low++) {
		char last = out[digits - 1 - low];

		out[digits - 1 - low] = out[low];
		out[low] = last;
	}
	return digits;
}

static unsigned int put_word(const char *word, char *out, unsigned int room)
{
	unsigned int length = strlen(word);

	if (length >= room)
		length = room - 1;
	memcpy(out, word, length);
	out[length] = 0;
	return length;
}

unsigned int spile_float_text(__u64 bits, unsigned int size, unsigned int precision, char *out,
			      unsigned int room)
{
	unsigned int fraction_bits = size == 4 ? 23 : 52, exponent_bits = size == 4 ? 8 : 11;
	__u64 special = ((1ull << exponent_bits) - 1) << fraction_bits;
	bool negative = bits >> (fraction_bits + exponent_bits) & 1;
	__u64 magnitude = bits & ((1ull << (fraction_bits + exponent_bits)) - 1);
	unsigned int length = 0, at, whole;
	__u32 words[FLOAT_WORDS];
	struct float_parts a;
	char *first;
	bool up;

	if (magnitude > special)
		return put_word("nan", out, room);
	if (magnitude == special || room < 9)
		return put_word(negative ? "-inf" : "inf", out, room);
	room--;
	a = take_parts(bits, fraction_bits, exponent_bits);
	if (negative)
		out[length++] = '-';
	first = out + length;
	float_spread(words, a.sig, a.power);
	/* One place is reserved for a carry. */
	whole = room - 1 - length;
	length += float_whole(words, first, whole < SPILE_FLOAT_DIGITS ? whole : SPILE_FLOAT_DIGITS);
	if (precision && length + 3 <= room)
		out[length++] = '.';
	else
		precision = 0;
	if (precision > room - 1 - length)
		precision = room - 1 - length;

	/* The fraction, its first bit the highest of the words. */
	float_spread(words, a.sig, a.power + 32 * FLOAT_WORDS);
	for (; precision; precision--) {
		__u64 carry = 0;

		for (at = 0; at < FLOAT_WORDS; at++) {
			carry += (__u64)words[at] * 10;
			words[at] = carry;
			carry >>= 32;
		}
		out[length++] = '0' + carry;
	}
	up = words[FLOAT_WORDS - 1] > 1U << 31;
	if (words[FLOAT_WORDS - 1] == 1U << 31) {
		char last = out[length - 1] == '.' ? out[length - 2] : out[length - 1];

		up = last & 1;
		for (at = 0; at < FLOAT_WORDS - 1; at++)
			up |= words[at] != 0;
	}
	if (up && float_carry(first, out + length)) {
		memmove(first + 1, first, out + length - first);
		*first = '1';
		length++;
	}
	out[length] = 0;
	return length;
}
