// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Aggregates: each CPU feeds its own values; they are merged when they are read.
 *
 * Any context, NMI included. Feeding is bounded by the search for the element, reading by the
 * number of CPUs.
 */
#include "map.h"
#include "map_find.h"
#include "parts.h"
#include "stats.h"

char **spile_map_areas;
unsigned int spile_map_area_count;

static const __s64 GREATEST = 0x7fffffffffffffffll;

unsigned int spile_histogram_buckets(const struct spile_stats_kind *kind)
{
	__u64 buckets;

	switch (kind->histogram) {
	case SPILE_HISTOGRAM_LOG:
		return 128;
	case SPILE_HISTOGRAM_LINEAR:
		/*
		 * The compiler has checked this; it is checked again so that a defect there
		 * cannot write outside the table.
		 */
		if (kind->width <= 0 || kind->high < kind->low)
			return SPILE_MAX_BUCKETS;
		buckets = ((__u64)kind->high - (__u64)kind->low) / (__u64)kind->width;
		return buckets > SPILE_MAX_BUCKETS - 3 ? SPILE_MAX_BUCKETS : buckets + 3;
	default:
		return 0;
	}
}

unsigned int spile_histogram_index(const struct spile_stats_kind *kind, spile_long value)
{
	if (kind->histogram == SPILE_HISTOGRAM_LOG) {
		/* 64 is 0; 65 is 1, 66 is 2 and 3, 67 is 4 to 7; 63 is -1, 62 is -2 and -3. */
		if (!value)
			return 64;
		if (value > 0)
			return 128 - __builtin_clzll(value);
		return __builtin_clzll(0 - (__u64)value);
	}
	if (value < kind->low)
		return 0;
	if (kind->width > 0) {
		__u64 bucket = ((__u64)value - (__u64)kind->low) / (__u64)kind->width;
		unsigned int last = spile_histogram_buckets(kind) - 1;

		return bucket < last ? bucket + 1 : last;
	}
	return 0;
}

void spile_stats_reset(struct spile_stats *stats, const struct spile_stats_kind *kind)
{
	stats->count = 0;
	stats->sum.all = 0;
	stats->min = GREATEST;
	stats->max = -GREATEST - 1;
	memset(stats + 1, 0, spile_stats_bytes(kind) - sizeof(*stats));
}

/* Feeds the parts that only some aggregates have: variance and histogram. */
static noinline void feed_rest(struct spile_stats *stats, const struct spile_stats_kind *kind,
			       spile_long value)
{
	if (kind->variance) {
		struct spile_squares *squares = spile_stats_squares(stats);
		unsigned __int128 square = (__int128)value * value;

		squares->low += square;
		squares->high += squares->low < square;
	}
	if (kind->histogram != SPILE_HISTOGRAM_NONE)
		spile_stats_buckets(stats, kind)[spile_histogram_index(kind, value)]++;
}

static __always_inline void feed(struct spile_stats *stats, const struct spile_table *table,
				 spile_long value)
{
	stats->count++;
	spile_add_wide(&stats->sum.low, &stats->sum.high, value);
	if (value < stats->min)
		stats->min = value;
	if (value > stats->max)
		stats->max = value;
	if (table->keeps_more)
		feed_rest(stats, &table->map->stats, value);
}

void spile_stats_feed(struct spile_context *c, const struct spile_map *map, spile_long value)
{
	const struct spile_table *table = spile_table_of(map);

	feed((struct spile_stats *)(spile_map_values(c) + table->local), table, value);
}

static __always_inline struct spile_stats *
stats_of(const struct spile_table *table, char *area, unsigned long number)
{
	return spile_part(table, area, number, table->local_stride);
}

/* The element has been deleted and reused since its data was written. */
static void restart_stats(const struct spile_table *table, struct spile_stats *stats,
			  __u64 generation)
{
	spile_stats_reset(stats, &table->map->stats);
	stats->generation = generation;
}

/* This CPU has no memory for the element: it feeds what all have in common. */
static void feed_common(struct spile_context *c, struct spile_table *table,
			struct spile_found found, spile_long value)
{
	struct spile_stats *stats = stats_of(table, spile_common_area(), found.number);

	if (!spile_making_begin(c, table))
		return;
	/* If it has been dropped meanwhile, so is this value. */
	if (spile_element(table, found.number)->generation == found.generation) {
		if (stats->generation != found.generation)
			restart_stats(table, stats, found.generation);
		feed(stats, table, value);
	}
	spile_making_end(table);
}

/* The element has been reused since this CPU last fed it, or it has not fed it yet. */
static noinline void feed_first(struct spile_context *c, const struct spile_table *table,
				struct spile_found found, spile_long value)
{
	struct spile_stats *stats;

	if (!spile_part_own(c, table, found.number)) {
		feed_common(c, spile_table_of(table->map), found, value);
		return;
	}
	stats = stats_of(table, spile_map_values(c), found.number);
	restart_stats(table, stats, found.generation);
	feed(stats, table, value);
}

static __always_inline void feed_found(struct spile_context *c, const struct spile_table *table,
				       struct spile_found found, spile_long value)
{
	struct spile_stats *stats = stats_of(table, spile_map_values(c), found.number);

	if (spile_unlikely(stats->generation != found.generation))
		feed_first(c, table, found, value);
	else
		feed(stats, table, value);
}

void spile_stats_add(struct spile_context *c, const struct spile_map *map,
		     const union spile_key *keys, spile_long value)
{
	struct spile_table *table = spile_table_of(map);
	struct spile_found found = spile_map_feed(c, table, keys);

	if (spile_likely(found.number))
		feed_found(c, table, found, value);
}

static noinline void feed_new(struct spile_context *c, struct spile_table *table,
			      union spile_key key, spile_long value)
{
	struct spile_found found = spile_map_feed_new(c, table, &key);

	if (found.number)
		feed_found(c, table, found, value);
}

void spile_stats_add_long(struct spile_context *c, const struct spile_map *map, spile_long number,
			  spile_long value)
{
	spile_feed_long(c, map, number, value, feed_found, feed_new);
}

void spile_stats_add_text(struct spile_context *c, const struct spile_map *map,
			  struct spile_string text, spile_long value)
{
	spile_feed_text(c, map, text, value, feed_found, feed_new);
}

void spile_stats_add_name(struct spile_context *c, const struct spile_map *map, const char *comm,
			  spile_long value)
{
	spile_feed_name(c, map, comm, value, feed_found, feed_new);
}

/*
 * Divides rest:*word, a number of 128 bits, by divisor, which is greater than rest.
 * Returns the new rest.
 */
static __u64 divide_word(__u64 rest, __u64 *word, __u64 divisor)
{
#if defined(__x86_64__)
	/* rest < divisor: the quotient fits, the instruction cannot fault. */
	__asm__("divq %2" : "+a"(*word), "+d"(rest) : "r"(divisor) : "cc");
#else
	int bit;

	for (bit = 63; bit >= 0; bit--) {
		bool carry = rest >> 63;

		rest = rest << 1 | (*word >> bit & 1);
		*word &= ~(1ull << bit);
		if (carry || rest >= divisor) {
			rest -= divisor;
			*word |= 1ull << bit;
		}
	}
#endif
	return rest;
}

static unsigned __int128 magnitude(__int128 value)
{
	return value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
}

/* Truncated. */
static spile_long average(const struct spile_stats *stats)
{
	unsigned __int128 sum = magnitude(stats->sum.all);
	__u64 low = sum;

	/* Each value is at most 2^63, so the upper half of the sum is less than the count. */
	divide_word(sum >> 64, &low, stats->count);
	return stats->sum.all < 0 ? (spile_long)(0 - low) : (spile_long)low;
}

enum { WORDS = 4 };	/* of 64 bits, the lowest first: room for count * squares and for sum^2 */

static void multiply(__u64 product[WORDS], const __u64 *a, unsigned int a_words, const __u64 *b,
		     unsigned int b_words)
{
	unsigned int i, j;

	memset(product, 0, WORDS * sizeof(*product));
	for (i = 0; i < a_words; i++) {
		__u64 carry = 0;

		for (j = 0; j < b_words; j++) {
			unsigned __int128 part =
				(unsigned __int128)a[i] * b[j] + product[i + j] + carry;

			product[i + j] = part;
			carry = part >> 64;
		}
		product[i + b_words] = carry;
	}
}

static void divide(__u64 number[WORDS], __u64 divisor)
{
	__u64 rest = 0;
	int i;

	for (i = WORDS - 1; i >= 0; i--)
		rest = divide_word(rest, &number[i], divisor);
}

/* (count * squares - sum^2) / (count * (count - 1)), exact, rounded down. */
static spile_long variance(const struct spile_stats *stats, const struct spile_squares *squares)
{
	unsigned __int128 sum = magnitude(stats->sum.all);
	__u64 square_sum[3] = { squares->low, squares->low >> 64, squares->high };
	__u64 sum_words[2] = { sum, sum >> 64 };
	__u64 number[WORDS], subtrahend[WORDS];
	bool borrow = false;
	int i;

	if (stats->count < 2)
		return -1;
	multiply(number, square_sum, 3, &stats->count, 1);
	multiply(subtrahend, sum_words, 2, sum_words, 2);
	for (i = 0; i < WORDS; i++) {
		unsigned __int128 part = (unsigned __int128)number[i] - subtrahend[i] - borrow;

		number[i] = part;
		borrow = part >> 64;
	}
	/* Rounding down twice is rounding down once. */
	divide(number, stats->count);
	divide(number, stats->count - 1);
	return number[1] | number[2] | number[3] || number[0] > (__u64)GREATEST ?
		       GREATEST :
		       (spile_long)number[0];
}

bool spile_stats_extract(const struct spile_few_stats *all, enum spile_extractor extractor,
			 spile_long *result)
{
	const struct spile_stats *stats = &all->stats;

	*result = 0;
	switch (extractor) {
	case SPILE_COUNT:
		*result = stats->count;
		return true;
	case SPILE_SUM:
		*result = stats->sum.all;
		return true;
	default:
		break;
	}
	if (!stats->count)
		return false;
	switch (extractor) {
	case SPILE_MIN:
		*result = stats->min;
		break;
	case SPILE_MAX:
		*result = stats->max;
		break;
	case SPILE_AVERAGE:
		*result = average(stats);
		break;
	default:
		*result = variance(stats, &all->squares);
	}
	return true;
}

/* The values that a CPU has been fed for an element; NULL if none. */
static struct spile_stats *part_of(const struct spile_table *table, unsigned int number,
				   unsigned int cpu)
{
	char *area = spile_map_area(cpu);
	struct spile_stats *part;

	if (!area || (table->map->keys && !number))
		return NULL;
	if (!table->map->keys)
		return (struct spile_stats *)(area + table->local);
	part = stats_of(table, area, number);
	if (part->generation != spile_element(table, number)->generation)
		return NULL;
	return part;
}

static void add_squares(struct spile_squares *squares, const struct spile_squares *more)
{
	squares->low += more->low;
	squares->high += more->high + (squares->low < more->low);
}

void spile_stats_collect(const struct spile_table *table, unsigned int number,
			 struct spile_few_stats *into)
{
	static const struct spile_stats_kind few = { .variance = 1 };
	struct spile_stats *stats = &into->stats;
	unsigned int cpu;

	spile_stats_reset(stats, &few);
	for (cpu = 0; cpu < spile_map_area_count; cpu++) {
		struct spile_stats *part = part_of(table, number, cpu);

		if (!part)
			continue;
		stats->count += part->count;
		stats->sum.all += part->sum.all;
		if (part->min < stats->min)
			stats->min = part->min;
		if (part->max > stats->max)
			stats->max = part->max;
		if (table->map->stats.variance)
			add_squares(&into->squares, spile_stats_squares(part));
	}
}

__u64 spile_stats_collect_buckets(const struct spile_table *table, unsigned int number,
				  __u64 *buckets)
{
	const struct spile_stats_kind *kind = &table->map->stats;
	unsigned int count = spile_histogram_buckets(kind);
	__u64 values = 0;
	unsigned int cpu, i;

	memset(buckets, 0, count * sizeof(*buckets));
	for (cpu = 0; cpu < spile_map_area_count; cpu++) {
		struct spile_stats *part = part_of(table, number, cpu);

		if (!part)
			continue;
		values += part->count;
		for (i = 0; i < count; i++)
			buckets[i] += spile_stats_buckets(part, kind)[i];
	}
	return values;
}

void spile_stats_reset_everywhere(struct spile_table *table)
{
	unsigned int cpu;

	for (cpu = 0; cpu < spile_map_area_count; cpu++) {
		char *area = spile_map_area(cpu);

		if (area)
			spile_stats_reset((struct spile_stats *)(area + table->local),
					  &table->map->stats);
	}
}

/* The element's number; 0 for a map without keys, or if there is no such element. */
static inline unsigned int number_of(const struct spile_table *table, const union spile_key *keys)
{
	return table->map->keys ? spile_map_find(table, keys) : 0;
}

static void fail_empty(struct spile_context *c)
{
	spile_fail_text(c, "empty aggregate");
}

spile_long spile_stats_get(struct spile_context *c, const struct spile_map *map,
			   const union spile_key *keys, enum spile_extractor extractor)
{
	const struct spile_table *table = spile_table_of(map);
	struct spile_few_stats all;
	spile_long result;

	spile_debit(c, spile_map_area_count);
	spile_stats_collect(table, number_of(table, keys), &all);
	if (!spile_stats_extract(&all, extractor, &result))
		fail_empty(c);
	return result;
}

int spile_histogram_has(struct spile_context *c, const struct spile_map *map,
			const union spile_key *keys, spile_long index)
{
	(void)c;
	(void)keys;
	return index >= 0 && index < spile_histogram_buckets(&map->stats);
}

spile_long spile_histogram_bucket(struct spile_context *c, const struct spile_map *map,
				  const union spile_key *keys, spile_long index)
{
	const struct spile_table *table = spile_table_of(map);
	unsigned int number = number_of(table, keys);
	__u64 values = 0, bucket = 0;
	unsigned int cpu;

	if (!spile_histogram_has(c, map, keys, index)) {
		spile_fail_text(c, "histogram index out of range");
		return 0;
	}
	spile_debit(c, spile_map_area_count);
	for (cpu = 0; cpu < spile_map_area_count; cpu++) {
		struct spile_stats *part = part_of(table, number, cpu);

		if (!part)
			continue;
		values += part->count;
		bucket += spile_stats_buckets(part, &map->stats)[index];
	}
	if (!values)
		fail_empty(c);
	return bucket;
}

char *spile_put_histogram(struct spile_context *c, char *at, const struct spile_map *map,
			  const union spile_key *keys)
{
	const struct spile_table *table = spile_table_of(map);
	unsigned int bytes = spile_histogram_buckets(&map->stats) * sizeof(__u64);

	if (!at)
		return at;
	spile_debit(c, spile_stats_bucket_steps(&map->stats));
	/* Summed up in aligned memory, then moved to their place after the length. */
	if (!spile_stats_collect_buckets(table, number_of(table, keys), (__u64 *)(at + 8)))
		fail_empty(c);
	memmove(at + 4, at + 8, bytes);
	memset(at + 4 + bytes, 0, 4);
	*(__u32 *)at = bytes;
	return at + SPILE_STRING_PART(bytes);
}
