// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kept_text.c, map.c, parts.c, stats.c, counts.c and iterate.c in user space, under sanitizers: random
 * operations are compared with a model that is a plain list, aggregates with plain arithmetic;
 * several CPUs (threads) feed one array at the same time. Prints the differences and exits with
 * 1 if there are any.
 *
 *     cc -fsanitize=address,undefined -pthread -o maps maps.c ../kept_text.c
 * ../map.c ../parts.c ../stats.c ../counts.c ../iterate.c ../string.c && ./maps
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../map.h"
#include "../parts.h"
#include "../stats.h"
#include "../stripe.h"

enum { CPUS = 4, STRING_BYTES = 64, SLOT_BYTES = 24, KEPT_BYTES = 1 << 16, MOST = 64 };

const struct spile_script spile_script = {
	.string_bytes = STRING_BYTES, .slot_bytes = SLOT_BYTES, .kept_bytes = KEPT_BYTES
};

static struct spile_context contexts[CPUS];
static char failure[CPUS][128];
static int failures;

void spile_fail_text(struct spile_context *c, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(failure[c - contexts], sizeof(failure[0]), format, arguments);
	va_end(arguments);
	c->error = SPILE_E_MESSAGE;
}

spile_ulong spile_record_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Set by a test in which the run has no statements left. */
static bool exhausted;

void spile_actions_spent(struct spile_context *c)
{
	if (exhausted)
		c->error = SPILE_E_ACTIONS;
	else
		c->actions = 1 << 20;
}

void spile_steps_spent(struct spile_context *c, spile_ulong steps)
{
	c->steps = steps % SPILE_STEPS;
	c->actions -= steps / SPILE_STEPS;
}

char *spile_map_values(struct spile_context *c)
{
	return spile_map_areas[c - contexts];
}

__u64 spile_map_moment(struct spile_context *c)
{
	static __u64 moment;

	(void)c;
	return __atomic_add_fetch(&moment, 1, __ATOMIC_RELAXED);
}

/* Without a time limit. */
__u64 spile_map_waited(struct spile_context *c, __u64 time)
{
	(void)c;
	(void)time;
	return 0;
}

/* As in lock.c, without a time limit. */
bool spile_stripe_wait(struct spile_context *c, const struct spile_table *table,
		       struct spile_stripe *stripe, bool another)
{
	while (another ? !spile_stripe_try_another(c, &stripe->holder) :
			 !spile_stripe_try(c, &stripe->holder, table->claimed))
		cpu_relax();
	return true;
}

/* 1: a run has all stripes, or waits for them. */
static int all_claimed;

bool spile_stripes_lock(struct spile_context *c, const struct spile_table *table)
{
	unsigned int i;

	(void)c;
	while (cmpxchg(&all_claimed, 0, 1) != 0)
		cpu_relax();
	for (i = 0; i < table->stripe_count; i++)
		while (smp_load_acquire(&table->stripes[i].holder))
			cpu_relax();
	return true;
}

void spile_stripes_unlock(const struct spile_table *table)
{
	(void)table;
	smp_store_release(&all_claimed, 0);
}

static bool failed_with(struct spile_context *c, const char *want)
{
	bool same = c->error == SPILE_E_MESSAGE && !strcmp(failure[c - contexts], want);

	c->error = SPILE_OK;
	return same;
}

#define CHECK(condition)         \
	((condition) ? (void)0 : \
		       (void)(failures++, printf("%s:%d: %s\n", __func__, __LINE__, #condition)))

static uint64_t random_state = 0x5eed;

static uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

static char *kept_memory;

static void load_kept(unsigned int bytes)
{
	free(kept_memory);
	kept_memory = calloc(1, spile_kept_bytes(bytes));
	spile_kept.seeds[0] = draw(UINT64_MAX) | 1;
	spile_kept.seeds[1] = draw(UINT64_MAX) | 1;
	spile_kept_begin(kept_memory, bytes);
}

/* Zeroed memory that begins with a cache line. */
static void *lines(size_t bytes)
{
	size_t whole = (bytes + SPILE_LINE_BYTES) & -(size_t)SPILE_LINE_BYTES;

	return memset(aligned_alloc(SPILE_LINE_BYTES, whole), 0, whole);
}

enum { READY = 4 };

static void *group_list;		/* all of them, to be freed */
static unsigned int asked;
static bool keeps_reserve_empty;

static char *group_memory(const struct spile_table *table)
{
	void **memory = lines(SPILE_LINE_BYTES + spile_group_bytes(table));

	*memory = group_list;
	group_list = memory;
	return (char *)memory + SPILE_LINE_BYTES;
}

static void fill_reserve(void)
{
	while (spile_reserve_has_room(spile_tables->reserve, 1))
		spile_reserve_add(spile_tables->reserve, group_memory(spile_tables));
}

/* Often late, so that common parts are fed too. */
void spile_parts_ask(void)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

	if (keeps_reserve_empty || __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) % 3)
		return;
	pthread_mutex_lock(&one);
	if (spile_reserve_is_low(spile_tables->reserve))
		fill_reserve();
	pthread_mutex_unlock(&one);
}

static void load_reserve(struct spile_table *table)
{
	if (!table->group_count)
		return;
	spile_unused_group = calloc(1, spile_group_bytes(table));
	table->reserve = aligned_alloc(SPILE_LINE_BYTES, sizeof(*table->reserve));
	*table->reserve = (struct spile_reserve){ .mask = READY - 1,
						  .most = CPUS * table->group_count,
						  .groups = calloc(READY, sizeof(char *)) };
	if (!keeps_reserve_empty)
		fill_reserve();
}

static char *make_area(const struct spile_table *table, size_t local)
{
	char *area = calloc(1, local + 1);
	unsigned int i;

	for (i = 0; i < table->group_count; i++)
		spile_groups(table, area)[i] = spile_group_address(table, spile_unused_group, i);
	return area;
}

static void load(const struct spile_map *map)
{
	size_t local = 0;
	unsigned int i;

	spile_tables = aligned_alloc(64, sizeof(*spile_tables));
	memset(spile_tables, 0, sizeof(*spile_tables));
	spile_map_layout(spile_tables, map, &local);
	spile_tables->elements = lines(spile_tables->elements_bytes);
	spile_tables->buckets = lines(spile_tables->buckets_bytes);
	if (map->striped) {
		spile_tables->stripes = aligned_alloc(64, spile_tables->stripes_bytes);
		memset(spile_tables->stripes, 0, spile_tables->stripes_bytes);
		spile_tables->claimed = &all_claimed;
	}
	for (i = 0; i <= SPILE_MAX_KEYS; i++)
		spile_tables->seeds[i] = (draw(UINT64_MAX) << 1) | 1;
	spile_map_areas = calloc(CPUS + 1, sizeof(*spile_map_areas));
	spile_map_area_count = CPUS + 1;
	load_reserve(spile_tables);
	/* CPU 1 is an impossible CPU. */
	for (i = 0; i <= CPUS; i++)
		if (i != 1)
			spile_map_areas[i] = make_area(spile_tables, local);
	if (spile_tables->group_count && !map->counted)
		for (i = 0; i < spile_tables->group_count; i++)
			spile_groups(spile_tables, spile_common_area())[i] =
				spile_group_address(spile_tables, group_memory(spile_tables), i);
	if (map->value == SPILE_VALUE_STATS && !map->keys)
		spile_stats_reset_everywhere(spile_tables);
	memset(contexts, 0, sizeof(contexts));
	load_kept(KEPT_BYTES);
}

static void unload(void)
{
	unsigned int i;

	for (i = 0; i <= CPUS; i++)
		free(spile_map_areas[i]);
	free(spile_map_areas);
	while (group_list) {
		void *next = *(void **)group_list;

		free(group_list);
		group_list = next;
	}
	if (spile_tables->reserve)
		free(spile_tables->reserve->groups);
	free(spile_tables->reserve);
	free(spile_unused_group);
	spile_unused_group = NULL;
	free(spile_tables->elements);
	free(spile_tables->buckets);
	if (spile_tables->stripes_bytes)
		free(spile_tables->stripes);
	free(spile_tables);
}

/* ---- Arrays of longs and strings, compared with a list of elements in the order of creation. */

struct value {
	spile_long number;
	char text[STRING_BYTES];
};

struct model {
	const struct spile_map *map;
	unsigned int count;
	struct {
		struct value keys[SPILE_MAX_KEYS];
		struct value value;
	} elements[MOST];
};

/* Draws from few values, so that keys recur; some of them differ only at their ends. */
static void draw_value(struct value *value, unsigned int variety)
{
	static const char *const texts[] = {
		"", "a", "b", "ab", "abc", "abcd", "abce", "abcdefg", "abcdefgh", "abcdefgi",
		"bbcdefgh",
		"abcdefghijklmnop", "abcdefghijklmnopq", "abcdefghijklmnopqrstuvw", "\xff", "a\xff",
		/* Longer than an element. */
		"abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwy",
		"abcdefghijklmnopqrstuvwxabcdefghijklmnopqrstuvwxabcdefghijklmno",
	};
	static const spile_long numbers[] = {
		0, 1, -1, INT64_MAX, INT64_MIN, 2, 1ll << 32, -(1ll << 32), 1ll << 63,
	};

	memset(value, 0, sizeof(*value));
	value->number = draw(3) ? (spile_long)draw(variety) :
				  numbers[draw(sizeof(numbers) / sizeof(*numbers))];
	strcpy(value->text, texts[draw(min(variety, sizeof(texts) / sizeof(*texts)))]);
}

static struct spile_string string_of(const struct value *value)
{
	return (struct spile_string){ value->text, strlen(value->text) };
}

static bool is_text(const struct spile_map *map, unsigned int key)
{
	return map->string_keys >> key & 1;
}

static void keys_of(const struct spile_map *map, const struct value *values, union spile_key *keys)
{
	unsigned int i;

	for (i = 0; i < map->keys; i++) {
		if (is_text(map, i))
			keys[i].text = string_of(&values[i]);
		else
			keys[i].number = values[i].number;
	}
}

static bool model_matches(const struct model *model, unsigned int element, const struct value *keys,
			  unsigned int any)
{
	unsigned int i;

	for (i = 0; keys && i < model->map->keys; i++) {
		const struct value *mine = &model->elements[element].keys[i];

		if (any >> i & 1)
			continue;
		if (is_text(model->map, i) ? strcmp(mine->text, keys[i].text) :
					     mine->number != keys[i].number)
			return false;
	}
	return true;
}

static int model_find(const struct model *model, const struct value *keys)
{
	unsigned int i;

	for (i = 0; i < model->count; i++)
		if (model_matches(model, i, keys, 0))
			return i;
	return -1;
}

static void model_remove(struct model *model, unsigned int element)
{
	model->count--;
	memmove(&model->elements[element], &model->elements[element + 1],
		(model->count - element) * sizeof(model->elements[0]));
}

/* Returns -1 if the model is full. */
static int model_make(struct model *model, const struct value *keys)
{
	int element = model_find(model, keys);

	if (element >= 0)
		return element;
	if (model->count == model->map->entries) {
		if (!model->map->wrap)
			return -1;
		model_remove(model, 0);
	}
	memset(&model->elements[model->count], 0, sizeof(model->elements[0]));
	memcpy(model->elements[model->count].keys, keys, model->map->keys * sizeof(*keys));
	return model->count++;
}

static int model_compare(const struct model *model, unsigned int a, unsigned int b, int sort)
{
	const struct value *one, *two;
	bool text;

	if (sort == SPILE_SORT_VALUE) {
		one = &model->elements[a].value;
		two = &model->elements[b].value;
		text = model->map->value == SPILE_VALUE_STRING;
	} else {
		one = &model->elements[a].keys[sort];
		two = &model->elements[b].keys[sort];
		text = is_text(model->map, sort);
	}
	if (text)
		return strcmp(one->text, two->text);
	return one->number < two->number ? -1 : one->number > two->number;
}

/* The elements of the slice, sorted; insertion sort is stable. */
static unsigned int model_order(const struct model *model, const struct value *keys,
				unsigned int any, int sort, int descending, unsigned int *order)
{
	unsigned int count = 0, i, at;

	for (i = 0; i < model->count; i++) {
		if (!model_matches(model, i, keys, any))
			continue;
		at = count++;
		while (sort != SPILE_SORT_NONE && at > 0) {
			int difference = model_compare(model, order[at - 1], i, sort);

			if (descending ? difference >= 0 : difference <= 0)
				break;
			order[at] = order[at - 1];
			at--;
		}
		order[at] = i;
	}
	return count;
}

static bool same(struct spile_string got, const struct value *want)
{
	return got.length == strlen(want->text) && !memcmp(got.text, want->text, got.length) &&
	       !got.text[got.length];
}

static void check_iteration(const struct model *model, const struct value *slice, unsigned int any)
{
	const struct spile_map *map = model->map;
	int sort = (int)draw(map->keys + 2) - 1, descending = draw(2);
	spile_long limit = draw(2) ? -1 : (spile_long)draw(model->count + 3);
	unsigned int wanted[MOST], order[MOST];
	union spile_key keys[SPILE_MAX_KEYS];
	unsigned int heads[SPILE_ORDER_STRIPES];
	struct spile_iterator it;
	unsigned int count, i, key;

	if (sort == (int)map->keys)
		sort = SPILE_SORT_VALUE;
	if (slice)
		keys_of(map, slice, keys);
	count = model_order(model, slice, any, sort, descending, wanted);
	if (limit >= 0 && limit < count)
		count = limit;
	spile_iterate(&contexts[0], &it, map, slice ? keys : NULL, any, sort, descending, limit,
		      sort != SPILE_SORT_NONE || slice ? order :
		      map->striped ? heads : NULL);
	for (i = 0; i < count; i++) {
		CHECK(spile_next(&it));
		for (key = 0; key < map->keys; key++) {
			const struct value *want = &model->elements[wanted[i]].keys[key];

			if (is_text(map, key))
				CHECK(same(spile_iterator_text(&it, key), want));
			else
				CHECK(spile_iterator_long(&it, key) == want->number);
		}
		if (map->value == SPILE_VALUE_STRING)
			CHECK(same(spile_iterator_value_text(&it),
				   &model->elements[wanted[i]].value));
		else
			CHECK(spile_iterator_value(&it) == model->elements[wanted[i]].value.number);
	}
	CHECK(!spile_next(&it));
	CHECK(!spile_next(&it));
}

static const char *overflow_of(const struct spile_map *map)
{
	return map->sized ? "Array overflow, check size limit (7)" :
			    "Array overflow, check MAXMAPENTRIES";
}

/* Whether the text can be a task's name; writes that with the rest of an earlier, longer one. */
static bool is_name(struct spile_string text, char *comm)
{
	if (text.length > 15 || memchr(text.text, 0, text.length))
		return false;
	memset(comm, 'x', 15);
	comm[15] = 0;
	memcpy(comm, text.text, text.length);
	comm[text.length] = 0;
	return true;
}

/* Calls the function that generated code would call. */
static void count(struct spile_context *c, const struct spile_map *map, const union spile_key *keys,
		  spile_long delta)
{
	char comm[16];

	if (map->keys > 1)
		spile_map_count(c, map, keys, delta);
	else if (map->string_keys && delta % 2 && is_name(keys[0].text, comm))
		spile_map_count_name(c, map, comm, delta);
	else if (map->string_keys)
		spile_map_count_text(c, map, keys[0].text, delta);
	else
		spile_map_count_long(c, map, keys[0].number, delta);
}

static bool contexts_fail_full(const struct spile_map *map)
{
	unsigned int i;

	for (i = 0; i < CPUS; i++)
		if (contexts[i].error)
			return failed_with(&contexts[i], overflow_of(map));
	return false;
}

/* A handler's operations on the one element that it holds. */
static void random_run(struct model *model, const struct value *keys, union spile_key *their_keys)
{
	const struct spile_map *map = model->map;
	struct spile_context *c = &contexts[0];
	struct spile_held *held = &c->held[draw(SPILE_MOST_HELD)];
	unsigned int steps = draw(6);

	if (map->wrap)
		CHECK(spile_map_hold_wrapping(c, map, held, their_keys));
	else if (map->keys == 1 && !map->string_keys && draw(2))
		CHECK(spile_map_hold_long(c, map, held, their_keys[0].number));
	else
		CHECK(spile_map_hold(c, map, held, their_keys));
	while (steps--) {
		int element = model_find(model, keys);
		struct value value;

		draw_value(&value, 30);
		CHECK(spile_held_has(held) == (element >= 0));
		switch (draw(4)) {
		case 0:
			if (map->value == SPILE_VALUE_STRING)
				CHECK(same(spile_held_text(held),
					   element < 0 ? &(struct value){ 0 } :
							 &model->elements[element].value));
			else
				CHECK(spile_held_long(held) ==
				      (element < 0 ? 0 : model->elements[element].value.number));
			break;
		case 1:
			spile_held_delete(map, held);
			if (element >= 0)
				model_remove(model, element);
			break;
		default:
			element = model_make(model, keys);
			if (map->value == SPILE_VALUE_STRING) {
				spile_held_set_text(c, map, held, string_of(&value));
			} else if (draw(2)) {
				spile_held_set_long(c, map, held, value.number);
			} else if (element >= 0) {
				value.number = spile_add(value.number,
							 model->elements[element].value.number);
				CHECK(spile_held_add(
					      c, map, held,
					      spile_subtract(
						      value.number,
						      model->elements[element].value.number)) ==
				      value.number);
			} else {
				CHECK(spile_held_add(c, map, held, 1) == 0);
			}
			if (element < 0)
				CHECK(failed_with(c, overflow_of(map)));
			else
				model->elements[element].value = value;
		}
		CHECK(!c->error);
	}
	if (map->wrap)
		spile_map_release_wrapping(map, held);
	else
		spile_map_release(held);
	CHECK(!held->holder);
	CHECK(!all_claimed);
}

static void random_operation(struct model *model)
{
	const struct spile_map *map = model->map;
	struct spile_context *c = &contexts[0];
	unsigned int any = draw(4) ? 0 : draw(1u << map->keys);
	struct value keys[SPILE_MAX_KEYS], value;
	union spile_key their_keys[SPILE_MAX_KEYS];
	unsigned int i;
	int element;

	for (i = 0; i < map->keys; i++)
		draw_value(&keys[i], map->keys < 3 ? 30 : 2);
	draw_value(&value, 30);
	keys_of(map, keys, their_keys);

	switch (draw(map->counted ? 13 : map->striped ? 14 : 10)) {
	case 13:
		random_run(model, keys, their_keys);
		break;
	case 10 ... 12:
		if (map->striped) {
			random_run(model, keys, their_keys);
			break;
		}
		element = model_make(model, keys);
		count(&contexts[draw(2) * 2], map, their_keys, value.number);
		if (element < 0)
			CHECK(contexts_fail_full(map));
		else
			model->elements[element].value.number =
				spile_add(model->elements[element].value.number, value.number);
		break;
	case 0 ... 3:
		element = model_make(model, keys);
		if (map->value == SPILE_VALUE_STRING) {
			spile_map_set_text(c, map, their_keys, string_of(&value));
		} else if (draw(2)) {
			spile_map_set_long(c, map, their_keys, value.number);
		} else {
			if (element >= 0)
				value.number = (uint64_t)value.number +
					       (uint64_t)model->elements[element].value.number;
			CHECK(spile_map_add(c, map, their_keys,
					    (uint64_t)value.number -
						    (element >= 0 ?
							     (uint64_t)model->elements[element]
								     .value.number :
							     0)) ==
			      (element >= 0 ? value.number : 0));
		}
		if (element < 0)
			CHECK(failed_with(c, overflow_of(map)));
		else
			model->elements[element].value = value;
		CHECK(!c->error);
		break;
	case 4:
		element = model_find(model, keys);
		if (map->value == SPILE_VALUE_STRING)
			CHECK(same(spile_map_text(c, map, their_keys),
				   element < 0 ? &(struct value){ 0 } :
						 &model->elements[element].value));
		else
			CHECK(spile_map_long(c, map, their_keys) ==
			      (element < 0 ? 0 : model->elements[element].value.number));
		break;
	case 5:
		for (i = 0; i < model->count && !model_matches(model, i, keys, any); i++)
			;
		CHECK(spile_map_has(c, map, their_keys, any) == (i < model->count));
		break;
	case 6:
		spile_map_delete(c, map, their_keys, any);
		for (i = 0; i < model->count; )
			if (model_matches(model, i, keys, any))
				model_remove(model, i);
			else
				i++;
		break;
	case 7:
		if (!draw(20)) {
			spile_map_clear(c, map);
			model->count = 0;
		}
		break;
	case 8:
		check_iteration(model, NULL, 0);
		break;
	default:
		check_iteration(model, keys, draw(1u << map->keys));
	}
	CHECK(spile_table_count(spile_tables) == model->count);
}

static void arrays(void)
{
	static const struct spile_map maps[] = {
		{ .name = "a", .keys = 1, .entries = 40 },
		{ .name = "b", .keys = 1, .entries = 7, .sized = 1 },
		{ .name = "c", .keys = 1, .entries = 7, .wrap = 1 },
		{ .name = "d",
		  .keys = 1,
		  .string_keys = 1,
		  .entries = 10,
		  .value = SPILE_VALUE_STRING },
		{ .name = "e",
		  .keys = 1,
		  .string_keys = 1,
		  .entries = 5,
		  .wrap = 1,
		  .value = SPILE_VALUE_STRING },
		{ .name = "f", .keys = 2, .string_keys = 2, .entries = 50 },
		{ .name = "g",
		  .keys = 3,
		  .string_keys = 5,
		  .entries = 20,
		  .wrap = 1,
		  .value = SPILE_VALUE_STRING },
		{ .name = "h", .keys = 4, .entries = 30 },
		{ .name = "i", .keys = 9, .string_keys = 0x155, .entries = MOST },
		{ .name = "j", .keys = 1, .entries = 1, .wrap = 1 },
		{ .name = "k", .keys = 1, .entries = 40, .counted = 1 },
		{ .name = "l", .keys = 1, .entries = 7, .counted = 1, .sized = 1 },
		{ .name = "m", .keys = 1, .string_keys = 1, .entries = 7, .wrap = 1, .counted = 1 },
		{ .name = "n", .keys = 3, .string_keys = 2, .entries = 30, .counted = 1 },
		{ .name = "o", .keys = 1, .entries = 40, .striped = 1 },
		{ .name = "p", .keys = 1, .entries = 7, .sized = 1, .striped = 1 },
		{ .name = "q",
		  .keys = 1,
		  .string_keys = 1,
		  .entries = 1,
		  .value = SPILE_VALUE_STRING,
		  .striped = 1 },
		{ .name = "r", .keys = 3, .string_keys = 2, .entries = MOST, .striped = 1 },
		{ .name = "s", .keys = 1, .entries = 7, .wrap = 1, .striped = 1 },
		{ .name = "t",
		  .keys = 1,
		  .string_keys = 1,
		  .entries = 1,
		  .wrap = 1,
		  .value = SPILE_VALUE_STRING,
		  .striped = 1 },
		{ .name = "u",
		  .keys = 2,
		  .string_keys = 2,
		  .entries = 25,
		  .wrap = 1,
		  .striped = 1 },
	};
	static struct model model;
	unsigned int i, step;

	for (i = 0; i < sizeof(maps) / sizeof(*maps) && !failures; i++) {
		load(&maps[i]);
		model.map = &maps[i];
		model.count = 0;
		for (step = 0; step < 30000 && !failures; step++)
			random_operation(&model);
		if (failures)
			printf("in array %s\n", maps[i].name);
		unload();
	}
}

/* Keys that differ in high bits or by a stride must not share buckets. */
static void spread(void)
{
	static const struct spile_map map = { .name = "a", .keys = 1, .entries = 4096 };
	static const uint64_t strides[] = { 1, 8, 4096, 1ull << 20, 1ull << 32, 1ull << 52 };
	unsigned int i, k, longest;

	for (i = 0; i < sizeof(strides) / sizeof(*strides); i++) {
		load(&map);
		for (k = 0; k < map.entries; k++) {
			union spile_key key = { .number = k * strides[i] };

			spile_map_set_long(&contexts[0], &map, &key, k);
		}
		for (k = 0, longest = 0; k < map.entries; k++) {
			unsigned int length = 0, number = spile_tables->buckets[k];

			for (; number; number = spile_element(spile_tables, number)->next)
				length++;
			if (length > longest)
				longest = length;
		}
		CHECK(spile_table_count(spile_tables) == map.entries);
		CHECK(longest < 40);
		unload();
	}
}

/* ---- Aggregates. */

static struct spile_context *any_cpu(void)
{
	static const unsigned int possible[] = { 0, 2, 3 };

	return &contexts[possible[draw(3)]];
}

static void expect_stats(const struct spile_map *map, const union spile_key *keys,
			 enum spile_extractor extractor, spile_long want, const char *what)
{
	spile_long got = spile_stats_get(&contexts[0], map, keys, extractor);

	if (got == want && !contexts[0].error)
		return;
	failures++;
	printf("%s, extractor %d: got %lld (error %d), expected %lld\n", what, extractor, got,
	       contexts[0].error, want);
	contexts[0].error = SPILE_OK;
}

/* Feeds the values on random CPUs and compares all extractors. */
static void feed(const struct spile_map *map, const spile_long *values, unsigned int count,
		 const char *what, spile_long average, spile_long variance)
{
	spile_long sum = 0, least = INT64_MAX, greatest = INT64_MIN;
	unsigned int i;

	load(map);
	for (i = 0; i < count; i++) {
		spile_stats_feed(any_cpu(), map, values[i]);
		sum = spile_add(sum, values[i]);
		least = min(values[i], least);
		greatest = values[i] > greatest ? values[i] : greatest;
	}
	expect_stats(map, NULL, SPILE_COUNT, count, what);
	expect_stats(map, NULL, SPILE_SUM, sum, what);
	expect_stats(map, NULL, SPILE_MIN, least, what);
	expect_stats(map, NULL, SPILE_MAX, greatest, what);
	expect_stats(map, NULL, SPILE_AVERAGE, average, what);
	expect_stats(map, NULL, SPILE_VARIANCE, variance, what);
	spile_map_clear(&contexts[0], map);
	expect_stats(map, NULL, SPILE_COUNT, 0, what);
	expect_stats(map, NULL, SPILE_SUM, 0, what);
	for (i = SPILE_MIN; i <= SPILE_VARIANCE; i++) {
		CHECK(spile_stats_get(&contexts[0], map, NULL, i) == 0);
		CHECK(failed_with(&contexts[0], "empty aggregate"));
	}
	unload();
}

static const struct spile_map scalar = {
	.name = "s",
	.value = SPILE_VALUE_STATS,
	.stats = { .variance = 1, .histogram = SPILE_HISTOGRAM_LOG },
};

#define FEED(average, variance, ...)                                                              \
	do {                                                                                      \
		const spile_long values_[] = { __VA_ARGS__ };                                     \
		feed(&scalar, values_, sizeof(values_) / sizeof(*values_), #__VA_ARGS__, average, \
		     variance);                                                                   \
	} while (0)

static void extremes(void)
{
	FEED(5, -1, 5);
	FEED(2, 1, 1, 2, 3);
	FEED(3, 5, 1, 2, 3, 4, 8, 4);	/* 110 - 22 * 22 / 6 is 29.3, a fifth of that 5.9 */
	FEED(-3, 12, -5, -5, 1);
	FEED(0, INT64_MAX, INT64_MIN, INT64_MAX);
	FEED(INT64_MIN, 0, INT64_MIN, INT64_MIN, INT64_MIN);
	FEED(INT64_MAX, 0, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX);
	FEED(INT64_MAX - 1, 2, INT64_MAX, INT64_MAX - 2);
	FEED(INT64_MIN + 1, 2, INT64_MIN, INT64_MIN + 2);
	FEED(-1, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -4, INT64_MAX, INT64_MIN);
}

/*
 * Variance does not change when a constant is added to all values: near the limits of a long it
 * must be the same as near 0, where 128 bits are enough to compute it.
 */
static void moved(void)
{
	spile_long values[200];
	unsigned int round, i, count;

	for (round = 0; round < 300; round++) {
		uint64_t spread = 1ull << draw(31);
		__int128 sum = 0, squares = 0, average;
		spile_long base, variance;

		count = 2 + draw(198);
		base = round % 3 == 0 ? 0 :
		       round % 3 == 1 ? INT64_MAX - (spile_long)spread :
					INT64_MIN;
		for (i = 0; i < count; i++) {
			spile_long value = draw(spread);

			sum += value;
			squares += (__int128)value * value;
			values[i] = base + value;
		}
		variance = (count * squares - sum * sum) / ((__int128)count * (count - 1));
		average = ((__int128)base * count + sum) / count;
		feed(&scalar, values, count, "moved", average, variance);
	}
}

static void histogram_indices(void)
{
	static const struct spile_stats_kind log = { .histogram = SPILE_HISTOGRAM_LOG };
	static const struct spile_stats_kind linear = {
		.histogram = SPILE_HISTOGRAM_LINEAR, .low = -10, .high = 15, .width = 10
	};
	static const struct spile_stats_kind widest = {
		.histogram = SPILE_HISTOGRAM_LINEAR,
		.low = INT64_MIN,
		.high = INT64_MAX,
		.width = 1ll << 58,
	};
	static const struct spile_stats_kind wrong[] = {
		{ .histogram = SPILE_HISTOGRAM_LINEAR, .low = 0, .high = 1000, .width = 1 },
		{ .histogram = SPILE_HISTOGRAM_LINEAR, .low = 10, .high = 0, .width = 1 },
		{ .histogram = SPILE_HISTOGRAM_LINEAR, .low = 0, .high = 10, .width = 0 },
	};
	static const struct { spile_long value; unsigned int index;
	} logs[] = {
		{ 0, 64 }, { 1, 65 }, { 2, 66 }, { 3, 66 }, { 4, 67 }, { 7, 67 }, { 8, 68 },
		{ INT64_MAX, 127 },
		{ 1ll << 62, 127 }, { (1ll << 62) - 1, 126 },
		{ -1, 63 }, { -2, 62 }, { -3, 62 }, { -4, 61 }, { INT64_MIN, 0 },
		{ INT64_MIN + 1, 1 },
	}, linears[] = {
		{ -11, 0 }, { INT64_MIN, 0 }, { -10, 1 }, { -1, 1 }, { 0, 2 }, { 9, 2 }, { 10, 3 }, { 15, 3 },
		{ 19, 3 },
		{ 20, 4 }, { INT64_MAX, 4 },
	};
	unsigned int i;

	CHECK(spile_histogram_buckets(&log) == 128);
	CHECK(spile_histogram_buckets(&linear) == 5);
	CHECK(spile_histogram_buckets(&widest) == 66);
	for (i = 0; i < sizeof(logs) / sizeof(*logs); i++)
		CHECK(spile_histogram_index(&log, logs[i].value) == logs[i].index);
	for (i = 0; i < sizeof(linears) / sizeof(*linears); i++)
		CHECK(spile_histogram_index(&linear, linears[i].value) == linears[i].index);
	CHECK(spile_histogram_index(&widest, INT64_MAX) == 64);
	CHECK(spile_histogram_index(&widest, INT64_MIN) == 1);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		CHECK(spile_histogram_buckets(&wrong[i]) <= SPILE_MAX_BUCKETS);
		CHECK(spile_histogram_index(&wrong[i], INT64_MAX) <
		      spile_histogram_buckets(&wrong[i]));
		CHECK(spile_histogram_index(&wrong[i], INT64_MIN) <
		      spile_histogram_buckets(&wrong[i]));
		CHECK(spile_histogram_index(&wrong[i], 5) < spile_histogram_buckets(&wrong[i]));
	}
}

/* What an array of aggregates must contain: by key, the values fed since the element was made. */
enum { FED_KEYS = 30, FED_VALUES = 60 };
static struct { unsigned int made, count; spile_long values[FED_VALUES]; } samples[FED_KEYS];
static unsigned int fed_live, fed_clock;

/* The key of the element that was made first, when k has none. */
static unsigned int oldest_fed(unsigned int k)
{
	unsigned int oldest = k, other;

	for (other = 0; other < FED_KEYS; other++)
		if (samples[other].count &&
		    (oldest == k || samples[other].made < samples[oldest].made))
			oldest = other;
	return oldest;
}

static void feed_one(struct spile_context *c, const struct spile_map *map, unsigned int k,
		     spile_long value)
{
	union spile_key key = { .number = k };

	if (samples[k].count == FED_VALUES)
		return;
	spile_stats_add(c, map, &key, value);
	if (!samples[k].count) {
		if (fed_live == map->entries && !map->wrap) {
			CHECK(failed_with(c, "Array overflow, check MAXMAPENTRIES"));
			return;
		}
		if (fed_live == map->entries) {
			samples[oldest_fed(k)].count = 0;
			fed_live--;
		}
		samples[k].made = ++fed_clock;
		fed_live++;
	}
	samples[k].values[samples[k].count++] = value;
}

/* Reads the element in every way. */
static void read_fed(struct spile_context *c, const struct spile_map *map, unsigned int k)
{
	union spile_key key = { .number = k };
	unsigned int v, in_third = 0;
	spile_long sum = 0;

	for (v = 0; v < samples[k].count; v++) {
		sum += samples[k].values[v];
		in_third += samples[k].values[v] / 10 == 2;
	}
	CHECK(spile_map_has(c, map, &key, 0) == (samples[k].count != 0));
	expect_stats(map, &key, SPILE_COUNT, samples[k].count, map->name);
	expect_stats(map, &key, SPILE_SUM, sum, map->name);
	if (!samples[k].count) {
		CHECK(spile_stats_get(c, map, &key, SPILE_MAX) == 0);
		CHECK(failed_with(c, "empty aggregate"));
		return;
	}
	expect_stats(map, &key, SPILE_AVERAGE, sum / samples[k].count, map->name);
	if (map->stats.histogram) {
		CHECK(spile_histogram_bucket(c, map, &key, 3) == in_third);
		CHECK(!c->error);
	}
}

/* Lists the elements by their sums, the largest first. */
static void list_fed(struct spile_context *c, const struct spile_map *map)
{
	unsigned int v, order[MOST];
	spile_long last = INT64_MAX;
	struct spile_iterator it;

	spile_iterate(c, &it, map, NULL, 0, SPILE_SORT_EXTRACTOR + SPILE_SUM, 1, -1, order);
	for (v = 0; spile_next(&it); v++) {
		union spile_key key = { .number = spile_iterator_long(&it, 0) };

		CHECK(samples[key.number].count);
		CHECK(spile_stats_get(c, map, &key, SPILE_SUM) <= last);
		last = spile_stats_get(c, map, &key, SPILE_SUM);
	}
	CHECK(v == fed_live);
}

/*
 * Arrays of aggregates on several CPUs: every read merges; a deleted element and
 * one that left a wrapping array begin again everywhere.
 */
static void aggregates(void)
{
	static const struct spile_map maps[] = {
		{ .name = "a",
		  .keys = 1,
		  .entries = 20,
		  .value = SPILE_VALUE_STATS,
		  .stats = { .variance = 1,
			     .histogram = SPILE_HISTOGRAM_LINEAR,
			     .low = 0,
			     .high = 50,
			     .width = 10 } },
		{ .name = "b", .keys = 1, .entries = 8, .wrap = 1, .value = SPILE_VALUE_STATS },
	};
	const struct spile_map *map;
	unsigned int i, step;

	for (i = 0; i < 2; i++) {
		map = &maps[i];
		load(map);
		memset(samples, 0, sizeof(samples));
		fed_clock = fed_live = 0;
		for (step = 0; step < 30000 && !failures; step++) {
			union spile_key key = { .number = draw(FED_KEYS) };
			unsigned int k = key.number;
			spile_long value = draw(100);
			struct spile_context *c = any_cpu();

			switch (draw(6)) {
			default:
				feed_one(c, map, k, value);
				break;
			case 3:
				if (draw(4))
					break;
				spile_map_delete(c, map, &key, 0);
				fed_live -= samples[k].count != 0;
				samples[k].count = 0;
				break;
			case 4:
				read_fed(c, map, k);
				break;
			case 5:
				list_fed(c, map);
			}
		}
		unload();
	}
}

static void histograms(void)
{
	static const struct spile_map map = {
		.name = "h", .value = SPILE_VALUE_STATS,
		.stats = { .histogram = SPILE_HISTOGRAM_LINEAR, .low = 0, .high = 20, .width = 10 },
	};
	static const spile_long values[] = { -5, 0, 5, 12, 13, 14, 100, 101 };
	static const struct {
		int sort, descending;
		spile_long limit;
		spile_long want[6];
	} orders[] = {
		{ SPILE_SORT_NONE, 0, -1, { 0, 1, 2, 3, 4, -1 } },
		{ 0, 1, -1, { 4, 3, 2, 1, 0, -1 } },
		{ SPILE_SORT_VALUE, 1, -1, { 2, 1, 4, 0, 3, -1 } },
		{ SPILE_SORT_VALUE, 0, 2, { 3, 0, -1 } },
	};
	struct spile_context *c = &contexts[0];
	unsigned int order[SPILE_MAX_BUCKETS], i, k;
	spile_ulong buckets[SPILE_MAX_BUCKETS];
	struct spile_iterator it;
	_Alignas(8) char payload[8 * 5 + 8];
	uint64_t put[5];

	load(&map);
	CHECK(spile_histogram_bucket(c, &map, NULL, 0) == 0);
	CHECK(failed_with(c, "empty aggregate"));
	CHECK(spile_put_histogram(c, payload, &map, NULL) == payload + sizeof(payload));
	CHECK(failed_with(c, "empty aggregate"));
	for (i = 0; i < sizeof(values) / sizeof(*values); i++)
		spile_stats_feed(any_cpu(), &map, values[i]);
	CHECK(spile_histogram_bucket(c, &map, NULL, 2) == 3);
	CHECK(spile_histogram_bucket(c, &map, NULL, 4) == 2);
	CHECK(!c->error);
	CHECK(spile_histogram_bucket(c, &map, NULL, 5) == 0);
	CHECK(failed_with(c, "histogram index out of range"));
	CHECK(spile_histogram_bucket(c, &map, NULL, -1) == 0);
	CHECK(failed_with(c, "histogram index out of range"));
	CHECK(spile_histogram_has(c, &map, NULL, 4) && !spile_histogram_has(c, &map, NULL, 5));

	memset(payload, 0xee, sizeof(payload));
	CHECK(spile_put_histogram(c, payload, &map, NULL) == payload + sizeof(payload));
	CHECK(payload[0] == 40 && !payload[1]);
	memcpy(put, payload + 4, sizeof(put));
	CHECK(put[0] == 1 && put[1] == 2 && put[2] == 3 && put[3] == 0 && put[4] == 2);
	CHECK(!payload[44] && !payload[47]);
	CHECK(!spile_put_histogram(c, NULL, &map, NULL));

	for (i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
		spile_iterate_histogram(c, &it, &map, NULL, orders[i].sort, orders[i].descending,
					orders[i].limit, order, buckets);
		for (k = 0; spile_next(&it); k++) {
			CHECK(spile_iterator_long(&it, 0) == orders[i].want[k]);
			CHECK(spile_iterator_value(&it) == (spile_long)put[orders[i].want[k]]);
		}
		CHECK(orders[i].want[k] == -1);
	}
	unload();
}

/* ---- Several CPUs at once. */

enum { THREADS = CPUS - 1, ROUNDS = 200000, SHARED_KEYS = 500 };

static const struct spile_map *shared_map;
static spile_long fed[CPUS][SHARED_KEYS];

/* One key in three does not fit into an element. */
static void name_key(struct value *text, unsigned int k)
{
	snprintf(text->text, sizeof(text->text), "process-%u%s", k,
		 k % 3 ? "" : " 0xffffffff81234567 0xffffffff81234568");
}

/* Of one thread; draw() is for one thread in all. */
static void next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
}

static void on_all_cpus(void *(*run)(void *argument))
{
	pthread_t threads[CPUS];
	unsigned int cpu;

	for (cpu = 0; cpu < CPUS; cpu++)
		if (cpu != 1)
			pthread_create(&threads[cpu], NULL, run, &contexts[cpu]);
	for (cpu = 0; cpu < CPUS; cpu++)
		if (cpu != 1)
			pthread_join(threads[cpu], NULL);
	for (cpu = 0; cpu < CPUS; cpu++)
		if (contexts[cpu].error)
			failures++, printf("CPU %u: %s\n", cpu, failure[cpu]);
}

static void *feed_on(void *argument)
{
	struct spile_context *c = argument;
	unsigned int cpu = c - contexts;
	uint64_t state = 0x1234567 * (cpu + 1);
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		struct value text;
		union spile_key key;
		char comm[16];
		unsigned int k;

		next_random(&state);
		k = state % SHARED_KEYS;
		name_key(&text, k);
		key.number = k;
		if (shared_map->string_keys)
			key.text = string_of(&text);
		if (shared_map->counted)
			count(c, shared_map, &key, 1);
		else if (shared_map->string_keys && i % 2 && is_name(key.text, comm))
			spile_stats_add_name(c, shared_map, comm, 1);
		else
			spile_stats_add(c, shared_map, &key, 1);
		fed[cpu][k]++;
	}
	return NULL;
}

static void at_once(const struct spile_map *map)
{
	unsigned int cpu, k, live = 0;
	spile_long total = 0;

	load(map);
	shared_map = map;
	memset(fed, 0, sizeof(fed));
	on_all_cpus(feed_on);
	for (k = 0; k < SHARED_KEYS; k++) {
		struct value text;
		union spile_key key = { .number = k };
		spile_long all = 0, count;

		name_key(&text, k);
		if (map->string_keys)
			key.text = string_of(&text);
		for (cpu = 0; cpu < CPUS; cpu++)
			all += fed[cpu][k];
		count = map->counted ? spile_map_long(&contexts[0], map, &key) :
				       spile_stats_get(&contexts[0], map, &key, SPILE_COUNT);
		live += spile_map_has(&contexts[0], map, &key, 0);
		total += count;
		if (!map->wrap)
			CHECK(count == all);
		else
			CHECK(count <= all);
	}
	CHECK(live == spile_table_count(spile_tables));
	CHECK(live == (map->wrap ? map->entries : SHARED_KEYS));
	CHECK(map->wrap || total == THREADS * ROUNDS);
	unload();
}

/* ---- Handlers on several CPUs that hold an element's stripe. */

enum { STRIPED_KEYS = 60 };

/*
 * Each key belongs to one CPU, except for a few that all CPUs use. Start and stop, as scripts
 * measure latencies: an element that one CPU has stored is deleted by no other.
 */
static void *start_and_stop(void *argument)
{
	struct spile_context *c = argument;
	struct spile_held *held = &c->held[1];
	unsigned int cpu = c - contexts, i;
	uint64_t state = 0x7654321 * (cpu + 1);

	for (i = 0; i < ROUNDS; i++) {
		union spile_key key;

		next_random(&state);
		key.number = state % STRIPED_KEYS;
		CHECK(state >> 21 & 1 ? spile_map_hold(c, shared_map, held, &key) :
					spile_map_hold_long(c, shared_map, held, key.number));
		if (state >> 20 & 1) {
			if (spile_held_has(held)) {
				fed[cpu][key.number] -= spile_held_long(held);
				spile_held_delete(shared_map, held);
			}
		} else {
			spile_held_add(c, shared_map, held, cpu + 1);
			fed[cpu][key.number] += cpu + 1;
		}
		spile_map_release(held);
	}
	return NULL;
}

static void striped_at_once(void)
{
	static const struct spile_map map = {
		.name = "s", .keys = 1, .entries = STRIPED_KEYS, .striped = 1
	};
	unsigned int heads[SPILE_ORDER_STRIPES];
	unsigned int cpu, k, live = 0;
	struct spile_iterator it;
	__u64 before = 0;

	load(&map);
	shared_map = &map;
	memset(fed, 0, sizeof(fed));
	on_all_cpus(start_and_stop);
	for (k = 0; k < STRIPED_KEYS; k++) {
		union spile_key key = { .number = k };
		spile_long all = 0;

		for (cpu = 0; cpu < CPUS; cpu++)
			all += fed[cpu][k];
		CHECK(spile_map_long(&contexts[0], &map, &key) == all);
		live += spile_map_has(&contexts[0], &map, &key, 0);
	}
	CHECK(live == spile_table_count(spile_tables));
	spile_iterate(&contexts[0], &it, &map, NULL, 0, SPILE_SORT_NONE, 0, -1, heads);
	for (k = 0; spile_next(&it); k++) {
		CHECK(spile_element(spile_tables, it.at)->sequence > before);
		before = spile_element(spile_tables, it.at)->sequence;
	}
	CHECK(k == live);
	/* No element was lost: there is room for all keys, and for no more. */
	for (k = 0; k <= STRIPED_KEYS; k++) {
		union spile_key key = { .number = k };

		CHECK(!contexts[0].error);
		spile_map_set_long(&contexts[0], &map, &key, 1);
	}
	CHECK(failed_with(&contexts[0], "Array overflow, check MAXMAPENTRIES"));
	unload();
}

/*
 * What one stripe writes when an element is made, changed or deleted lies in cache lines that no
 * other stripe uses: elements and buckets.
 */
static void lines_of_stripes(unsigned int entries, unsigned int keys, bool text, bool wrap)
{
	const struct spile_map map = { .name = "l",
				       .keys = 1,
				       .string_keys = text,
				       .entries = entries,
				       .wrap = wrap,
				       .striped = 1 };
	enum { MOST_LINES = 1 << 12 };
	static const struct spile_stripe *owners[2][MOST_LINES];
	struct spile_context *c = &contexts[0];
	unsigned int k, line;

	load(&map);
	memset(owners, 0, sizeof(owners));
	for (k = 0; k < keys; k++) {
		char name[16];
		union spile_key key = { .number = k };
		const struct spile_stripe *stripe;
		size_t at;
		unsigned int number;

		if (text)
			key.text = (struct spile_string){ name, sprintf(name, "%u", k) };
		spile_map_set_long(c, &map, &key, k);
		number = spile_map_find(spile_tables, &key);
		CHECK(number && !c->error);
		stripe = spile_stripe_of(spile_tables, spile_element(spile_tables, number)->hash);
		at = (size_t)number * spile_tables->stride;
		for (line = at / SPILE_LINE_BYTES;
		     line <= (at + spile_tables->stride - 1) / SPILE_LINE_BYTES; line++) {
			CHECK(!owners[0][line] || owners[0][line] == stripe);
			owners[0][line] = stripe;
		}
		line = (spile_element(spile_tables, number)->hash >> spile_tables->bucket_shift) *
		       sizeof(*spile_tables->buckets) / SPILE_LINE_BYTES;
		CHECK(!owners[1][line] || owners[1][line] == stripe);
		owners[1][line] = stripe;
	}
	unload();
}

static void *make_one(void *argument)
{
	struct spile_context *c = argument;
	union spile_key key = { .number = c - contexts };

	CHECK(spile_map_hold(c, shared_map, &c->held[0], &key));
	spile_map_set_long(c, shared_map, &key, 1);
	spile_map_release(&c->held[0]);
	return NULL;
}

/* A CPU has taken the last run, and has not freed the rest of it yet: another waits for that. */
static void rest_of_a_run(void)
{
	static const struct spile_map map = {
		.name = "r", .keys = 1, .entries = 3, .striped = 1
	};
	struct spile_stripe *stripe = NULL;
	pthread_t thread;
	unsigned int k;
	__u64 rest;

	load(&map);
	shared_map = &map;
	make_one(&contexts[0]);
	for (k = 0; k < spile_stripe_count(spile_tables); k++)
		if (spile_tables->stripes[k].free)
			stripe = &spile_tables->stripes[k];
	CHECK(stripe && spile_tables->used == map.entries);
	rest = stripe->free;
	stripe->free = 0;
	spile_tables->used += SPILE_TAKING;
	pthread_create(&thread, NULL, make_one, &contexts[2]);
	usleep(20000);
	smp_store_release(&stripe->free, rest);
	__atomic_fetch_sub(&spile_tables->used, SPILE_TAKING, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(!contexts[2].error && spile_table_count(spile_tables) == 2);
	make_one(&contexts[3]);
	CHECK(!contexts[3].error && spile_table_count(spile_tables) == 3);
	unload();
}

/* ---- The same of an array that wraps. */

enum { WRAPPING_KEYS = 10, MOST_KEPT = 4, WRAPPING_ROUNDS = ROUNDS / 4 };

/*
 * Each CPU makes and deletes its own keys, a few at the same time, for which there is just room:
 * none may be dropped, although runs that make nothing look for absent ones too.
 */
static void *keep_own(void *argument)
{
	struct spile_context *c = argument;
	struct spile_held *held = &c->held[0];
	bool mine[WRAPPING_KEYS] = { false };
	unsigned int cpu = c - contexts, kept = 0, i;
	uint64_t state = 0x1234567 * (cpu + 1);

	for (i = 0; i < WRAPPING_ROUNDS; i++) {
		union spile_key key;
		unsigned int k;

		next_random(&state);
		k = state % WRAPPING_KEYS;
		key.number = cpu * WRAPPING_KEYS + k;
		CHECK(spile_map_hold_wrapping(c, shared_map, held, &key));
		CHECK(spile_held_has(held) == mine[k]);
		if (state >> 20 & 1) {
			spile_held_delete(shared_map, held);
			kept -= mine[k];
			mine[k] = false;
		}
		/* What a run has deleted it can make again. */
		if (state >> 21 & 1 && (mine[k] || kept < MOST_KEPT)) {
			spile_held_set_long(c, shared_map, held, key.number);
			kept += !mine[k];
			mine[k] = true;
		}
		spile_map_release_wrapping(shared_map, held);
	}
	for (i = 0; i < WRAPPING_KEYS; i++)
		fed[cpu][i] = mine[i];
	return NULL;
}

/* New keys only, of each CPU in ascending order. */
static void *drop_oldest_keys(void *argument)
{
	struct spile_context *c = argument;
	struct spile_held *held = &c->held[0];
	unsigned int cpu = c - contexts, i;

	for (i = 0; i < WRAPPING_ROUNDS; i++) {
		union spile_key key = { .number = cpu * WRAPPING_ROUNDS + i };

		CHECK(spile_map_hold_wrapping(c, shared_map, held, &key));
		CHECK(!spile_held_has(held));
		spile_held_set_long(c, shared_map, held, i);
		CHECK(spile_held_has(held));
		spile_map_release_wrapping(shared_map, held);
	}
	return NULL;
}

static spile_long sum_of_all(struct spile_context *c)
{
	spile_long sum = 0;
	unsigned int k;

	for (k = 0; k < STRIPED_KEYS; k++) {
		union spile_key key = { .number = k };

		sum += spile_map_long(c, shared_map, &key);
	}
	return sum;
}

/*
 * Moves amounts between two elements, which may be the same; some are deleted when they are 0.
 * The sum of all stays 0, which one CPU checks with all stripes.
 */
static void *move_amounts(void *argument)
{
	struct spile_context *c = argument;
	unsigned int cpu = c - contexts, i;
	uint64_t state = 0x2345671 * (cpu + 1);

	for (i = 0; i < WRAPPING_ROUNDS; i++) {
		union spile_key from, to;
		unsigned int k;

		if (!cpu && i % 64 == 0) {
			spile_stripes_lock(c, spile_tables);
			CHECK(!sum_of_all(c));
			spile_stripes_unlock(spile_tables);
		}
		next_random(&state);
		from.number = state % STRIPED_KEYS;
		to.number = (state >> 20) % STRIPED_KEYS;
		spile_map_want(shared_map, &c->held[2], &from);
		spile_map_want(shared_map, &c->held[3], &to);
		CHECK(spile_map_hold_several(c, shared_map, &c->held[2], 2, shared_map->wrap));
		spile_map_add(c, shared_map, &from, -1);
		spile_map_add(c, shared_map, &to, 1);
		if (!spile_map_long(c, shared_map, &to))
			spile_map_delete(c, shared_map, &to, 0);
		if (!spile_map_has(c, shared_map, &from, 0) && state >> 41 & 1) {
			spile_map_set_long(c, shared_map, &from, 7);
			spile_map_delete(c, shared_map, &from, 0);
		}
		for (k = 2; k < 4; k++) {
			if (shared_map->wrap)
				spile_map_release_wrapping(shared_map, &c->held[k]);
			else
				spile_map_release(&c->held[k]);
			CHECK(!c->held[k].holder);
		}
	}
	return NULL;
}

static void several_at_once(bool wrap)
{
	struct spile_map map = { .name = "v",
				 .keys = 1,
				 .entries = STRIPED_KEYS,
				 .wrap = wrap,
				 .striped = 1 };
	unsigned int k;

	shared_map = &map;
	load(&map);
	on_all_cpus(move_amounts);
	CHECK(!sum_of_all(&contexts[0]));
	/* No element was lost. */
	for (k = 0; k < STRIPED_KEYS; k++) {
		union spile_key key = { .number = k };

		spile_map_set_long(&contexts[0], &map, &key, 1);
	}
	CHECK(!contexts[0].error);
	CHECK(spile_table_count(spile_tables) == STRIPED_KEYS);
	unload();
}

/* Two elements of a full array that wraps: those dropped are the oldest, also of the two. */
static void several_when_full(void)
{
	static const struct spile_map map = {
		.name = "x", .keys = 1, .entries = 3, .wrap = 1, .striped = 1
	};
	struct spile_context *c = &contexts[0];
	union spile_key keys[40];
	unsigned int k, i;

	load(&map);
	for (k = 0; k < 40; k++)
		keys[k].number = k;
	for (k = 0; k + 1 < 40; k += 2) {
		spile_map_want(&map, &c->held[0], &keys[k]);
		spile_map_want(&map, &c->held[1], &keys[k + 1]);
		CHECK(spile_map_hold_several(c, &map, &c->held[0], 2, 1));
		spile_map_set_long(c, &map, &keys[k], 1);
		spile_map_set_long(c, &map, &keys[k + 1], 1);
		spile_map_release_wrapping(&map, &c->held[1]);
		spile_map_release_wrapping(&map, &c->held[0]);
		CHECK(!all_claimed);
		for (i = 0; i < 40; i++)
			CHECK(spile_map_has(c, &map, &keys[i], 0) ==
			      (i <= k + 1 && i + 3 > k + 1));
	}
	unload();
}

static void wrapping_at_once(void)
{
	static const struct spile_map map = { .name = "w",
					      .keys = 1,
					      .entries = (CPUS - 1) * MOST_KEPT,
					      .wrap = 1,
					      .striped = 1 };
	unsigned int cpu, k, live = 0;

	shared_map = &map;
	load(&map);
	on_all_cpus(keep_own);
	for (cpu = 0; cpu < CPUS; cpu++) {
		for (k = 0; cpu != 1 && k < WRAPPING_KEYS; k++) {
			union spile_key key = { .number = cpu * WRAPPING_KEYS + k };

			CHECK(spile_map_has(&contexts[0], &map, &key, 0) == fed[cpu][k]);
			live += fed[cpu][k];
		}
	}
	CHECK(live == spile_table_count(spile_tables));
	unload();

	load(&map);
	on_all_cpus(drop_oldest_keys);
	CHECK(spile_table_count(spile_tables) == map.entries);
	live = 0;
	for (cpu = 0; cpu < CPUS; cpu++) {
		bool newer = true;

		/* Those left of a CPU are its newest. */
		for (k = WRAPPING_ROUNDS; cpu != 1 && k-- > 0;) {
			union spile_key key = { .number = cpu * WRAPPING_ROUNDS + k };
			bool has = spile_map_has(&contexts[0], &map, &key, 0);

			CHECK(newer || !has);
			newer = has;
			live += has;
		}
	}
	CHECK(live == map.entries);
	unload();
}

/* Walks over elements end with an error when the run has no statements left. */
static void out_of_statements(void)
{
	enum { ELEMENTS = 4000 };
	static const struct spile_map map = {
		.name = "long", .keys = 1, .entries = ELEMENTS, .value = SPILE_VALUE_LONG
	};
	static unsigned int order[ELEMENTS];
	struct spile_context *c = &contexts[0];
	union spile_key key = { 0 };
	struct spile_iterator it;

	load(&map);
	for (key.number = 0; key.number < ELEMENTS; key.number++)
		spile_map_set_long(c, &map, &key, draw(100));

	exhausted = true;
	c->actions = 2;
	c->steps = 0;
	spile_iterate(c, &it, &map, NULL, 0, 0, 0, -1, order);
	CHECK(c->error == SPILE_E_ACTIONS && !spile_next(&it));
	c->error = SPILE_OK;
	c->actions = 2;
	key.number = -1;
	CHECK(!spile_map_has(c, &map, &key, 0) && c->error == SPILE_OK);
	spile_map_clear(c, &map);
	CHECK(c->error == SPILE_E_ACTIONS && spile_table_count(spile_tables) > 0 &&
	      spile_table_count(spile_tables) < ELEMENTS);
	c->error = SPILE_OK;
	exhausted = false;
	c->actions = 1 << 20;
	spile_map_clear(c, &map);
	CHECK(c->error == SPILE_OK && !spile_table_count(spile_tables));
	unload();
}

/*
 * If there is no memory for long strings, no element is created for a long key, and a long value
 * is truncated; both are counted.
 */
static void no_room_for_texts(void)
{
	static const struct spile_map map = {
		.name = "full",
		.keys = 1,
		.string_keys = 1,
		.entries = MOST,
		.value = SPILE_VALUE_STRING
	};
	static const struct spile_map counted = {
		.name = "counted", .keys = 1, .string_keys = 1, .entries = MOST, .counted = 1
	};
	struct spile_context *c = &contexts[0];
	struct value text;
	union spile_key key;
	unsigned int i;

	load(&map);
	/* Three strings of 46 or 47 bytes, each with its prefix. */
	load_kept(8 + 3 * 64);
	for (i = 0; i < 30; i += 3) {
		name_key(&text, i);
		key.text = string_of(&text);
		spile_map_set_text(c, &map, &key, key.text);
		/* Equal strings need no more memory. */
		spile_map_set_text(c, &map, &key, key.text);
		CHECK(!c->error && spile_map_has(c, &map, &key, 0) == (i < 9));
		if (i < 9)
			CHECK(spile_string_compare(spile_map_text(c, &map, &key), key.text) == 0);
	}
	CHECK(spile_table_count(spile_tables) == 3);
	CHECK(spile_kept.refused == 14 && spile_kept.cut == 0);
	key.text = SPILE_LITERAL("short");
	spile_map_set_text(c, &map, &key, string_of(&text));
	CHECK(spile_string_compare(spile_map_text(c, &map, &key), SPILE_LITERAL("process-27")) == 0);
	CHECK(spile_kept.refused == 14 && spile_kept.cut == 1);
	unload();

	load(&counted);
	load_kept(8 + 3 * 64);
	for (i = 0; i < 300; i += 3) {
		name_key(&text, i % 30);
		key.text = string_of(&text);
		count(c, &counted, &key, 1);
	}
	CHECK(!c->error && spile_kept.refused == 70 && spile_table_count(spile_tables) == 3);
	unload();
}

int main(int argc, char **argv)
{
	static const struct spile_map maps[] = {
		{ .name = "a", .keys = 1, .entries = SHARED_KEYS, .value = SPILE_VALUE_STATS },
		{ .name = "b",
		  .keys = 1,
		  .string_keys = 1,
		  .entries = SHARED_KEYS,
		  .value = SPILE_VALUE_STATS },
		{ .name = "c", .keys = 1, .entries = SHARED_KEYS, .counted = 1 },
		{ .name = "d", .keys = 1, .string_keys = 1, .entries = SHARED_KEYS, .counted = 1 },
		{ .name = "e",
		  .keys = 1,
		  .string_keys = 1,
		  .entries = 50,
		  .wrap = 1,
		  .value = SPILE_VALUE_STATS },
		{ .name = "f", .keys = 1, .entries = 1, .wrap = 1, .value = SPILE_VALUE_STATS },
		{ .name = "g", .keys = 1, .entries = 50, .wrap = 1, .counted = 1 },
	};
	unsigned int i;

	(void)argv;
	/*
	 * With any argument, only tests that are valid under ThreadSanitizer are run. Replacing
	 * elements of a wrapping array is a deliberate race, which generations resolve.
	 */
	if (argc == 1) {
		arrays();
		spread();
		extremes();
		moved();
		histogram_indices();
		aggregates();
		histograms();
		out_of_statements();
		no_room_for_texts();
		/* Keys that are at most an eighth of the elements, which is a run for each. */
		lines_of_stripes(2048, 256, false, false);
		lines_of_stripes(2048, 256, true, false);
		lines_of_stripes(2048, 256, false, true);
		lines_of_stripes(100, 12, false, false);
	}
	for (i = 0; i < (argc == 1 ? 7 : 4); i++) {
		at_once(&maps[i]);
		/* Common parts alone. */
		keeps_reserve_empty = true;
		at_once(&maps[i]);
		keeps_reserve_empty = false;
	}
	striped_at_once();
	rest_of_a_run();
	wrapping_at_once();
	several_when_full();
	several_at_once(false);
	several_at_once(true);
	free(kept_memory);
	return failures != 0;
}
