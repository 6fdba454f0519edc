// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * foreach: over the elements of an array or the buckets of a histogram, in the order of creation
 * or sorted.
 *
 * Any context. All of it is charged (script.h), and ends when the run has used up its
 * statements. Sorting is a heap sort, so it is n log n for any data. It stops when `limit`
 * elements are in place, so the first ten of thousands cost little more than one pass. Equal
 * elements are compared by their order of creation, so sorting is stable.
 */
#include "counts.h"
#include "map.h"
#include "stats.h"

/* Sort criterion for elements or buckets. */
struct order {
	const struct spile_table *table;
	const __u64 *buckets;	/* of a histogram: elements are bucket numbers */
	int sort;		/* number of the key, or SPILE_SORT_VALUE; buckets: by counts */
	bool text;		/* the compared values are strings */
	bool descending;
};

static __s64 long_of(const struct order *order, unsigned int number)
{
	const struct spile_element *element = spile_element(order->table, number);

	return *(const __s64 *)(order->sort == SPILE_SORT_VALUE ?
					spile_element_value(order->table, element) :
					spile_element_key(order->table, element, order->sort));
}

static struct spile_string text_of(const struct order *order, unsigned int number)
{
	const struct spile_element *element = spile_element(order->table, number);

	return spile_slot_string(order->sort == SPILE_SORT_VALUE ?
					 spile_element_value(order->table, element) :
					 spile_element_key(order->table, element, order->sort));
}

/* Whether `a` comes before `b`; they are different elements. */
static bool comes_before(const struct order *order, unsigned int a, unsigned int b)
{
	int difference;

	if (order->buckets) {
		__u64 one = order->buckets[a], two = order->buckets[b];

		if (order->sort != SPILE_SORT_VALUE)
			return order->descending ? a > b : a < b;
		if (one != two)
			return order->descending ? one > two : one < two;
		return a < b;
	}
	if (order->sort == SPILE_SORT_NONE) {
		difference = 0;
	} else if (order->text) {
		difference = spile_string_compare(text_of(order, a), text_of(order, b));
	} else {
		__s64 one = long_of(order, a), two = long_of(order, b);

		difference = one < two ? -1 : one > two;
	}
	if (difference)
		return order->descending ? difference > 0 : difference < 0;
	return spile_element(order->table, a)->sequence < spile_element(order->table, b)->sequence;
}

/*
 * Inserts `number` into the heap of `count` elements at position `at` or below; the element that
 * comes first is on top.
 */
static void sift_down(const struct order *order, unsigned int *heap, unsigned int count,
		      unsigned int at, unsigned int number)
{
	unsigned int child;

	for (; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && comes_before(order, heap[child + 1], heap[child]))
			child++;
		if (!comes_before(order, heap[child], number))
			break;
		heap[at] = heap[child];
	}
	heap[at] = number;
}

/*
 * Moves the first `wanted` of `count` elements, in reverse order, to the end of `elements`.
 * False if the run must end.
 */
static bool sort_first(struct spile_context *c, const struct order *order, unsigned int *elements,
		       unsigned int count, unsigned int wanted)
{
	/*
	 * Two comparisons per level, more expensive for strings; while the heap is
	 * built, two levels on average.
	 */
	const unsigned int level = order->text ? 8 : 2;
	unsigned int i, left;

	for (i = count / 2; i-- > 0; ) {
		if (!spile_charge_steps(c, 2 * level))
			return false;
		sift_down(order, elements, count, i, elements[i]);
	}
	for (left = count; left > count - wanted; left--) {
		unsigned int first = elements[0];

		if (!spile_charge_steps(c, level * (32 - __builtin_clz(left))))
			return false;
		sift_down(order, elements, left - 1, 0, elements[left - 1]);
		elements[left - 1] = first;
	}
	return true;
}

static unsigned int limited(unsigned int count, spile_long limit)
{
	return limit >= 0 && limit < count ? limit : count;
}

/*
 * Stores the extractor's result, by which the elements are sorted, as their value: the
 * global's lock is held for all CPUs.
 */
static bool extract_all(struct spile_context *c, const struct spile_table *table,
			enum spile_extractor extractor, const unsigned int *elements,
			unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct spile_few_stats all;

		if (!spile_charge_steps(c, 1 + spile_map_area_count))
			return false;
		spile_stats_collect(table, elements[i], &all);
		spile_stats_extract(&all, extractor,
				    spile_element_value(table, spile_element(table, elements[i])));
	}
	return true;
}

/* The same for numbers that are stored per CPU. */
static bool merge_all(struct spile_context *c, const struct spile_table *table,
		      const unsigned int *elements, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (!spile_charge_steps(c, 1 + spile_map_area_count))
			return false;
		spile_counts_merge(table, elements[i]);
	}
	return true;
}

static bool sort_elements(struct spile_context *c, const struct spile_table *table, int sort,
			  int descending, unsigned int *elements, unsigned int count,
			  unsigned int wanted)
{
	const struct spile_map *map = table->map;
	struct order order = { .table = table, .sort = sort, .descending = descending };

	if (sort >= SPILE_SORT_VALUE) {
		order.sort = SPILE_SORT_VALUE;
		order.text = map->value == SPILE_VALUE_STRING;
		if (map->value == SPILE_VALUE_STATS &&
		    !extract_all(c, table,
				 sort == SPILE_SORT_VALUE ? SPILE_COUNT :
							    sort - SPILE_SORT_EXTRACTOR,
				 elements, count))
			return false;
		if (map->counted && !merge_all(c, table, elements, count))
			return false;
	} else if (sort != SPILE_SORT_NONE) {
		order.text = map->string_keys >> sort & 1;
	}
	return sort_first(c, &order, elements, count, wanted);
}

static void reverse(unsigned int *elements, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count / 2; i++) {
		unsigned int other = elements[i];

		elements[i] = elements[count - 1 - i];
		elements[count - 1 - i] = other;
	}
}

/*
 * Lists the elements of the slice, those of each stripe in the order of creation. Returns their
 * number; 0 if there is no memory for the list, or the run must end.
 */
static unsigned int list_elements(struct spile_context *c, const struct spile_table *table,
				  const union spile_key *keys, unsigned int any,
				  unsigned int *elements)
{
	unsigned int stripes = elements ? spile_stripe_count(table) : 0;
	unsigned int number, count = 0, i;

	for (i = 0; i < stripes; i++) {
		for (number = table->stripes[i].oldest; number;
		     number = spile_element(table, number)->newer) {
			if (!spile_charge_steps(c, spile_map_match_steps(table, keys)))
				return 0;
			if (spile_map_matches(table, spile_element(table, number), keys, any))
				elements[count++] = number;
		}
	}
	return count;
}

/* Starts with the first element of each stripe; one of them is the oldest of all. */
static void begin_stripes(struct spile_iterator *it, const struct spile_table *table,
			  unsigned int *heads)
{
	unsigned int i;

	_Static_assert((int)SPILE_ORDER_STRIPES == (int)SPILE_STRIPES, "room for each stripe");
	it->heads = heads;
	for (i = 0; i < table->stripe_count; i++)
		heads[i] = table->stripes[i].oldest;
}

/* Takes the oldest of these elements and replaces it by the next one of its stripe. */
static unsigned int next_of_stripes(const struct spile_iterator *it,
				    const struct spile_table *table)
{
	__u64 least = ~0ull;
	unsigned int first = 0, i;

	for (i = 0; i < table->stripe_count; i++) {
		unsigned int number = it->heads[i];

		if (number && spile_element(table, number)->sequence < least) {
			least = spile_element(table, number)->sequence;
			first = i;
		}
	}
	i = it->heads[first];
	if (i)
		it->heads[first] = spile_element(table, i)->newer;
	return i;
}

void spile_iterate(struct spile_context *c, struct spile_iterator *it, const struct spile_map *map,
		   const union spile_key *keys, unsigned int any, int sort, int descending,
		   spile_long limit, unsigned int *order)
{
	const struct spile_table *table = spile_table_of(map);
	unsigned int count;

	it->map = map;
	it->context = c;
	it->merged = !map->counted || sort == SPILE_SORT_VALUE;
	it->at = 0;
	it->next = table->stripes->oldest;
	it->order = NULL;
	it->heads = NULL;
	it->buckets = NULL;
	if (sort == SPILE_SORT_NONE && !keys) {
		it->left = limited(spile_table_count(table), limit);
		if (table->stripes_bytes)
			begin_stripes(it, table, order);
		return;
	}
	it->order = order;
	count = list_elements(c, table, keys, any, order);
	it->left = limited(count, limit);
	/* spile_next() takes them from the end. */
	it->next = count;
	if (sort == SPILE_SORT_NONE && !table->stripes_bytes)
		reverse(order, count);
	else if (!sort_elements(c, table, sort, descending, order, count, it->left))
		it->left = 0;
}

void spile_iterate_histogram(struct spile_context *c, struct spile_iterator *it,
			     const struct spile_map *map, const union spile_key *keys, int sort,
			     int descending, spile_long limit, unsigned int *order,
			     spile_ulong *buckets)
{
	const struct spile_table *table = spile_table_of(map);
	unsigned int count = spile_histogram_buckets(&map->stats);
	struct order by = { .sort = sort, .descending = descending, .buckets = buckets };
	unsigned int i;

	it->map = map;
	it->context = c;
	it->merged = 1;
	it->at = 0;
	it->order = order;
	it->heads = NULL;
	it->buckets = buckets;
	it->left = limited(count, limit);
	it->next = count;
	spile_debit(c, spile_stats_bucket_steps(&map->stats));
	spile_stats_collect_buckets(table, map->keys ? spile_map_find(table, keys) : 0, buckets);
	for (i = 0; i < count; i++)
		order[i] = i;
	if (sort == SPILE_SORT_NONE)
		reverse(order, count);
	else if (!sort_first(c, &by, order, count, it->left))
		it->left = 0;
}

int spile_next(struct spile_iterator *it)
{
	const struct spile_table *table = spile_table_of(it->map);

	if (it->heads) {
		/* The body may have emptied the array, as below. */
		if (!it->left || !spile_table_count(table))
			return 0;
		it->left--;
		spile_debit(it->context, SPILE_STRIPES / 4);
		it->at = next_of_stripes(it, table);
		return it->at != 0;
	}
	/* The body may have emptied the array. */
	if (!it->left || !it->next || (!it->buckets && !spile_table_count(table)))
		return 0;
	it->left--;
	if (it->order) {
		it->at = it->order[--it->next];
		return 1;
	}
	it->at = it->next;
	it->next = spile_element(table, it->at)->newer;
	return 1;
}

static inline const struct spile_element *current_element(const struct spile_iterator *it)
{
	return spile_element(spile_table_of(it->map), it->at);
}

spile_long spile_iterator_long(const struct spile_iterator *it, unsigned int key)
{
	if (it->buckets)
		return it->at;
	return *(spile_long *)spile_element_key(spile_table_of(it->map), current_element(it), key);
}

struct spile_string spile_iterator_text(const struct spile_iterator *it, unsigned int key)
{
	return spile_slot_string(
		spile_element_key(spile_table_of(it->map), current_element(it), key));
}

spile_long spile_iterator_value(const struct spile_iterator *it)
{
	if (it->buckets)
		return it->buckets[it->at];
	if (!it->merged) {
		spile_debit(it->context, spile_map_area_count);
		return spile_counts_merge(spile_table_of(it->map), it->at);
	}
	return *(spile_long *)spile_element_value(spile_table_of(it->map), current_element(it));
}

struct spile_string spile_iterator_value_text(const struct spile_iterator *it)
{
	return spile_slot_string(spile_element_value(spile_table_of(it->map), current_element(it)));
}
