/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for an element, for map.c and stats.c. It is inline because it is most of the work
 * of a hit that counts by a key. Any context, bounded, as map.c.
 */
#ifndef SPILE_MAP_FIND_H
#define SPILE_MAP_FIND_H

#include "map.h"

static inline __u64 spile_load8(const char *at)
{
	__u64 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline __u64 spile_load4(const char *at)
{
	__u32 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline __u64 spile_fold(__u64 a, __u64 b)
{
#ifdef __x86_64__
	/* A variable of 128 bits would have the compiler align the stack at each call. */
	__u64 high;

	__asm__("mulq %2" : "+a"(a), "=d"(high) : "r"(b) : "cc");
	return a ^ high;
#else
	unsigned __int128 product = (unsigned __int128)a * b;

	return (__u64)product ^ (__u64)(product >> 64);
#endif
}

/* For more than 16 bytes: hashes 16 at a time until at most 16 are left. */
static noinline __u64 spile_hash_front(const char *text, unsigned int length, __u64 hash,
				       __u64 other)
{
	for (; length > 16; length -= 16, text += 16)
		hash = spile_fold(spile_load8(text) ^ other, spile_load8(text + 8) ^ hash);
	return hash;
}

/* A text of at most 16 bytes: its bytes, then zeros. */
struct spile_words {
	__u64 first;
	__u64 second;
	unsigned int length;
};

static __always_inline struct spile_words spile_words_of(const char *text, unsigned int length)
{
	struct spile_words words = { .length = length };

	if (length > 8) {
		words.first = spile_load8(text);
		words.second = spile_load8(text + length - 8) >> (128 - 8 * length);
	} else if (length >= 4) {
		words.first = spile_load4(text) |
			      spile_load4(text + length - 4) << (8 * (length - 4));
	} else if (length) {
		/* One to three bytes: first, middle and last are all of them. */
		words.first = (unsigned char)text[0] |
			      (__u64)(unsigned char)text[length >> 1] << (8 * (length >> 1)) |
			      (__u64)(unsigned char)text[length - 1] << (8 * (length - 1));
	}
	return words;
}

/* The name of a task; the 16 bytes may be changing, so the last one is taken for a NUL. */
static __always_inline struct spile_words spile_words_of_comm(const char *comm)
{
	static const __u64 ones = 0x0101010101010101ull, tops = 0x8080808080808080ull;
	struct spile_words words = { .first = spile_load8(comm) };
	__u64 end = (words.first - ones) & ~words.first & tops;

	/* The lowest set bit belongs to the first NUL. What is above it is left from other names. */
	if (spile_likely(end)) {
		words.first &= (end - 1) & ~end;
		words.length = (unsigned int)__builtin_ctzll(end) >> 3;
		return words;
	}
	words.second = spile_load8(comm + 8) & ~0ull >> 8;
	end = (words.second - ones) & ~words.second & tops;
	words.second &= (end - 1) & ~end;
	words.length = 8 + ((unsigned int)__builtin_ctzll(end) >> 3);
	return words;
}

static __always_inline __u64 spile_hash_words(struct spile_words words, __u64 seed, __u64 other)
{
	return spile_fold(words.first ^ other, words.second ^ seed);
}

static __always_inline __u64 spile_hash_text(const char *text, unsigned int length, __u64 seed,
					     __u64 other)
{
	__u64 hash = seed ^ ((__u64)length << 32);

	if (length <= 16)
		return spile_hash_words(spile_words_of(text, length), seed, other);
	hash = spile_hash_front(text, length, hash, other);
	return spile_fold(spile_load8(text + length - 16) ^ other,
			  spile_load8(text + length - 8) ^ hash);
}

/*
 * The hash of one long is the upper half of its product with a random odd number (multiply-shift
 * hashing): any two keys collide with a probability of 2^-31.
 */
static inline unsigned int spile_hash_long(const struct spile_table *table, spile_long key)
{
	return ((__u64)key * table->seeds[0]) >> 32;
}

/* The hash of a single string key. */
static __always_inline unsigned int spile_hash_single_text(const struct spile_table *table,
							   struct spile_string key)
{
	__u64 hash = spile_hash_text(key.text, key.length, table->seeds[0],
				     table->seeds[SPILE_MAX_KEYS]);

	return hash >> 32;
}

/* For more than 16 bytes. */
static noinline bool spile_same_long_text(const char *a, const char *b, unsigned int length)
{
	unsigned int i;

	for (i = 0; i + 8 < length; i += 8)
		if (spile_load8(a + i) != spile_load8(b + i))
			return false;
	return spile_load8(a + length - 8) == spile_load8(b + length - 8);
}

static __always_inline bool spile_same_text(const char *a, const char *b, unsigned int length)
{
	if (length > 16)
		return spile_same_long_text(a, b, length);
	if (length >= 8)
		return spile_load8(a) == spile_load8(b) &&
		       spile_load8(a + length - 8) == spile_load8(b + length - 8);
	if (length >= 4)
		return spile_load4(a) == spile_load4(b) &&
		       spile_load4(a + length - 4) == spile_load4(b + length - 4);
	if (!length)
		return true;
	/* One to three bytes: first, middle and last are all of them. */
	return a[0] == b[0] && a[length >> 1] == b[length >> 1] && a[length - 1] == b[length - 1];
}

static inline unsigned int *spile_bucket(const struct spile_table *table, unsigned int hash)
{
	return &table->buckets[hash >> table->bucket_shift];
}

static inline spile_long spile_long_key(const struct spile_element *element)
{
	return *(const spile_long *)(element + 1);
}

static __always_inline bool spile_is_long(const struct spile_table *table,
					  const struct spile_element *element, const void *keys,
					  unsigned int hash)
{
	const union spile_key *key = keys;

	(void)table;
	(void)hash;
	return spile_long_key(element) == key->number;
}

static __always_inline bool spile_is_text(const struct spile_table *table,
					  const struct spile_element *element, const void *keys,
					  unsigned int hash)
{
	const union spile_key *key = keys;
	const struct spile_slot *slot = (const struct spile_slot *)(element + 1);
	/* Read once: another CPU may be replacing the element. Pairs with write_slot(). */
	unsigned int length = READ_ONCE(slot->length);

	(void)table;
	return element->hash == hash && length == key->text.length &&
	       spile_same_text(spile_slot_text(slot, length), key->text.text, length);
}

/* The key is one string of less than 16 bytes; keys: a struct spile_words. */
static __always_inline bool spile_is_short(const struct spile_table *table,
					   const struct spile_element *element, const void *keys,
					   unsigned int hash)
{
	const struct spile_slot *slot = (const struct spile_slot *)(element + 1);
	const struct spile_words *words = keys;

	(void)table;
	(void)hash;
	/* The text of a key is padded (write_keys() of map.c). */
	return spile_load8(slot->text) == words->first &&
	       READ_ONCE(slot->length) == words->length &&
	       spile_load8(slot->text + 8) == words->second;
}

/*
 * As find_element() of map.c, while other CPUs may be adding elements. Chains then only grow,
 * unless the array wraps: then an element may move to another chain during the walk. A found
 * element is valid, because its generation did not change while the keys were compared. If none
 * is found, the caller that adds it searches again. A walk that ends up in another chain is
 * limited by the number of elements.
 */
static __always_inline struct spile_found
spile_find_concurrently(const struct spile_table *table, unsigned int hash,
			bool (*is_it)(const struct spile_table *table,
				      const struct spile_element *element, const void *keys,
				      unsigned int hash),
			const void *keys)
{
	/* Acquire: pairs with the release of the bucket in make_element(), as does that of next. */
	unsigned int number = smp_load_acquire(spile_bucket(table, hash));
	unsigned int seen = 0;

	/*
	 * Acquire: pairs with the release of the bucket for the element that was linked there
	 * before.
	 */
	for (; number; number = smp_load_acquire(&spile_element(table, number)->next)) {
		const struct spile_element *element = spile_element(table, number);
		/*
		 * Acquire: the keys are read after it; pairs with the second smp_wmb() in
		 * make_element().
		 */
		__u64 generation = smp_load_acquire(&element->generation);

		if (is_it(table, element, keys, hash)) {
			if (!table->wraps)
				return (struct spile_found){ number, generation };
			/*
			 * The keys are read before the generation is read again; pairs with the
			 * first smp_wmb() there.
			 */
			smp_rmb();
			if (!(generation & 1) && READ_ONCE(element->generation) == generation)
				return (struct spile_found){ number, generation };
		}
		if (spile_unlikely(++seen > table->most))
			break;
	}
	return (struct spile_found){ 0 };
}

/*
 * The hit path of an array whose only key is one long or one string: `feed` gets the element and
 * the amount; for a key without an element `feed_new` creates one, and computes the hash again, so
 * that it takes no register here. Both are constants, so that they become direct calls.
 */
typedef void spile_feed_fn(struct spile_context *c, const struct spile_table *table,
			   struct spile_found found, spile_long amount);
typedef void spile_feed_new_fn(struct spile_context *c, struct spile_table *table,
			       union spile_key key, spile_long amount);

static __always_inline void spile_feed_long(struct spile_context *c, const struct spile_map *map,
					    spile_long number, spile_long amount,
					    spile_feed_fn *feed, spile_feed_new_fn *feed_new)
{
	struct spile_table *table = spile_table_of(map);
	const union spile_key key = { .number = number };
	unsigned int hash = spile_hash_long(table, number);
	struct spile_found found = spile_find_concurrently(table, hash, spile_is_long, &key);

	if (spile_likely(found.number))
		feed(c, table, found, amount);
	else
		feed_new(c, table, key, amount);
}

static __always_inline void spile_feed_text(struct spile_context *c, const struct spile_map *map,
					    struct spile_string text, spile_long amount,
					    spile_feed_fn *feed, spile_feed_new_fn *feed_new)
{
	struct spile_table *table = spile_table_of(map);
	const union spile_key key = { .text = text };
	unsigned int hash = spile_hash_single_text(table, text);
	struct spile_found found = spile_find_concurrently(table, hash, spile_is_text, &key);

	if (spile_likely(found.number))
		feed(c, table, found, amount);
	else
		feed_new(c, table, key, amount);
}

/* The task's name is new. */
static noinline void spile_feed_new_name(struct spile_context *c, struct spile_table *table,
					 __u64 first, __u64 second, spile_long amount,
					 spile_feed_new_fn *feed_new)
{
	const __u64 name[] = { first, second };
	struct spile_string text = { .text = (const char *)name };

	/* The last byte is a NUL. */
	while (text.length < sizeof(name) - 1 && text.text[text.length])
		text.length++;
	feed_new(c, table, (union spile_key){ .text = text }, amount);
}

/* The same as spile_feed_text() for the name of a task. */
static __always_inline void spile_feed_name(struct spile_context *c, const struct spile_map *map,
					    const char *comm, spile_long amount,
					    spile_feed_fn *feed, spile_feed_new_fn *feed_new)
{
	struct spile_table *table = spile_table_of(map);
	const struct spile_words name = spile_words_of_comm(comm);
	unsigned int hash = spile_hash_words(name, table->seeds[0],
					     table->seeds[SPILE_MAX_KEYS]) >> 32;
	struct spile_found found = spile_find_concurrently(table, hash, spile_is_short, &name);

	if (spile_likely(found.number))
		feed(c, table, found, amount);
	else
		spile_feed_new_name(c, table, name.first, name.second, amount, feed_new);
}

#endif
