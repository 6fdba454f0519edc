// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Long strings of array elements. A string is complete before it is linked to its bucket, and never
 * changes. Two CPUs that store the same text at once may store it twice, which costs memory
 * only: elements are compared by their bytes.
 */
#include "kept_text.h"
#include "map_find.h"

/* Bytes of strings for each bucket. */
enum { BUCKET_SHARE = 1024 };

struct spile_kept spile_kept;

static unsigned int bucket_bits(unsigned int bytes)
{
	unsigned int bits = 1;

	while (bits < 20 && (size_t)BUCKET_SHARE << bits < bytes)
		bits++;
	return bits;
}

size_t spile_kept_bytes(unsigned int bytes)
{
	/* string_bytes can be read from any text, so there are as many after the last. */
	return (sizeof(unsigned int) << bucket_bits(bytes)) + bytes +
	       sizeof(struct spile_kept_text) + spile_script.string_bytes + 8;
}

void spile_kept_begin(char *memory, unsigned int bytes)
{
	unsigned int bits = bucket_bits(bytes);

	spile_kept.buckets = (unsigned int *)memory;
	spile_kept.bucket_shift = 32 - bits;
	spile_kept.base = memory + (sizeof(unsigned int) << bits);
	spile_kept.most = bytes / 8;
	/* No text has the number 0. */
	spile_kept.used = 1;
	spile_kept.refused = 0;
	spile_kept.cut = 0;
}

static struct spile_kept_text *kept_text(unsigned int number)
{
	return (struct spile_kept_text *)(spile_kept.base + (size_t)number * 8);
}

static unsigned int find_kept(unsigned int number, unsigned int hash, struct spile_string text)
{
	while (number) {
		const struct spile_kept_text *kept = kept_text(number);

		if (kept->hash == hash && kept->length == text.length &&
		    spile_same_text(kept->text, text.text, text.length))
			break;
		number = kept->next;
	}
	return number;
}

/* Allocates memory for a string; 0 if there is none. */
static unsigned int take_room(unsigned int length)
{
	unsigned int words = (sizeof(struct spile_kept_text) + length + 1 + 7) / 8;
	unsigned int used = READ_ONCE(spile_kept.used), seen;

	while (words <= spile_kept.most - used) {
		seen = cmpxchg(&spile_kept.used, used, used + words);
		if (seen == used)
			return used;
		used = seen;
	}
	return 0;
}

unsigned int spile_keep_text(struct spile_string text)
{
	unsigned int hash = spile_hash_text(text.text, text.length, spile_kept.seeds[0],
					    spile_kept.seeds[1]) >> 32;
	unsigned int *bucket = &spile_kept.buckets[hash >> spile_kept.bucket_shift];
	/* Acquire: for the text that it leads to; pairs with the cmpxchg() below. */
	unsigned int first = smp_load_acquire(bucket);
	unsigned int number = find_kept(first, hash, text);
	struct spile_kept_text *made;

	if (number)
		return number;
	number = take_room(text.length);
	if (!number)
		return 0;
	made = kept_text(number);
	made->hash = hash;
	made->length = text.length;
	memcpy(made->text, text.text, text.length);
	made->text[text.length] = 0;
	for (;;) {
		unsigned int seen;

		made->next = first;
		/* A full barrier: the text is visible before its number. */
		seen = cmpxchg(bucket, first, number);
		if (seen == first)
			return number;
		first = seen;
	}
}
