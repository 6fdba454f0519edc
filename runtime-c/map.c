// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Elements of arrays: found by hash, linked in the order of their creation.
 *
 * Any context, NMI included; does not allocate or sleep. A hash chain has one element
 * on average, and keys cannot be chosen to collide, because the hash is seeded with
 * random numbers at each start.
 */
#include "counts.h"
#include "map.h"
#include "map_find.h"
#include "parts.h"
#include "stats.h"
#include "stripe.h"

enum {
	DELETE_STEPS = 2,
	MAKING_POLLS = 1024,	/* between two looks at the clock */
	/* tens of milliseconds; the CPU has interrupts off, so only a hypervisor can preempt it */
	RUN_TRIES = 1 << 22,
};

struct spile_table *spile_tables;

/* The owner of an unclaimed table. */
static const int unclaimed;

static unsigned int hash_of_keys(const struct spile_table *table, const union spile_key *keys)
{
	const struct spile_map *map = table->map;
	__u64 hash = 0;
	unsigned int i;

	for (i = 0; i < map->keys; i++) {
		if (map->string_keys >> i & 1)
			hash += spile_hash_text(keys[i].text.text, keys[i].text.length,
					  table->seeds[i], table->seeds[SPILE_MAX_KEYS]);
		else
			hash += (__u64)keys[i].number * table->seeds[i];
	}
	return hash >> 32;
}

bool spile_map_matches(const struct spile_table *table, const struct spile_element *element,
		       const union spile_key *keys, unsigned int any)
{
	const struct spile_map *map = table->map;
	unsigned int i;

	if (!keys)
		return true;
	for (i = 0; i < map->keys; i++) {
		const void *mine = spile_element_key(table, element, i);

		if (any >> i & 1)
			continue;
		if (map->string_keys >> i & 1) {
			const struct spile_slot *slot = mine;
			/*
			 * Read once, because another CPU may be replacing the element. Pairs
			 * with write_slot().
			 */
			unsigned int length = READ_ONCE(slot->length);

			if (length != keys[i].text.length ||
			    !spile_same_text(spile_slot_text(slot, length), keys[i].text.text,
					     length))
				return false;
		} else if (*(const spile_long *)mine != keys[i].number) {
			return false;
		}
	}
	return true;
}

static inline unsigned int hash_of(const struct spile_table *table, const union spile_key *keys)
{
	if (table->single_long)
		return spile_hash_long(table, keys[0].number);
	if (table->single_text)
		return spile_hash_single_text(table, keys[0].text);
	return hash_of_keys(table, keys);
}

static inline bool has_keys(const struct spile_table *table, const struct spile_element *element,
			    const void *keys, unsigned int hash)
{
	if (table->single_long)
		return spile_is_long(table, element, keys, hash);
	if (table->single_text)
		return spile_is_text(table, element, keys, hash);
	return element->hash == hash && spile_map_matches(table, element, keys, 0);
}

static inline unsigned int find_element(const struct spile_table *table,
					const union spile_key *keys, unsigned int hash)
{
	unsigned int number = *spile_bucket(table, hash);

	while (number) {
		const struct spile_element *element = spile_element(table, number);

		if (has_keys(table, element, keys, hash))
			break;
		number = element->next;
	}
	return number;
}

unsigned int spile_map_find(const struct spile_table *table, const union spile_key *keys)
{
	return find_element(table, keys, hash_of(table, keys));
}

/* Removes the element from its bucket's chain and from the list in order of creation. */
static __always_inline void unlink_element(struct spile_table *table, struct spile_stripe *stripe,
					   struct spile_element *element, unsigned int number)
{
	unsigned int *link = spile_bucket(table, element->hash);

	while (*link != number)
		link = &spile_element(table, *link)->next;
	WRITE_ONCE(*link, element->next);

	if (element->older)
		spile_element(table, element->older)->newer = element->newer;
	else
		stripe->oldest = element->newer;
	if (element->newer)
		spile_element(table, element->newer)->older = element->older;
	else
		stripe->newest = element->older;
	stripe->count--;
}

/*
 * Deleted elements of a striped table stay on the free list of their stripe. If no unused
 * element is left, other stripes take them as well, without this stripe's lock. An attempt fails
 * only if another CPU's has succeeded.
 */
static unsigned int pop_free(const struct spile_table *table, struct spile_stripe *stripe)
{
	__u64 head = READ_ONCE(stripe->free);

	while ((__u32)head) {
		/*
		 * If another CPU has taken it, this value is stale, but then the count has
		 * changed too.
		 */
		__u32 next = READ_ONCE(spile_element(table, (__u32)head)->next);
		__u64 seen = cmpxchg(&stripe->free, head, ((head >> 32) + 1) << 32 | next);

		if (seen == head)
			return (__u32)head;
		head = seen;
	}
	return 0;
}

/* Frees the elements from `first` to `last`, which are linked by next. */
static void push_free(const struct spile_table *table, struct spile_stripe *stripe,
		      unsigned int first, unsigned int last)
{
	__u64 head = READ_ONCE(stripe->free), seen;

	for (;;) {
		WRITE_ONCE(spile_element(table, last)->next, (__u32)head);
		/* A full barrier: the links are visible before the head that leads to them. */
		seen = cmpxchg(&stripe->free, head, ((head >> 32) + 1) << 32 | first);
		if (seen == head)
			break;
		head = seen;
	}
}

/* As pop_free(), but tries the spare element first. */
static __always_inline unsigned int take_deleted(const struct spile_table *table,
						 struct spile_stripe *stripe)
{
	unsigned int number = READ_ONCE(stripe->spare);

	if (number)
		/*
		 * A full barrier: orders the last owner's accesses to the element before ours.
		 * Pairs with give_back().
		 */
		number = xchg(&stripe->spare, 0);
	return spile_likely(number) ? number : pop_free(table, stripe);
}

static void reserve(const struct spile_table *table, struct spile_stripe *stripe,
		    unsigned int number)
{
	WRITE_ONCE(spile_element(table, number)->next, stripe->reserved);
	stripe->reserved = number;
}

static unsigned int take_reserved(const struct spile_table *table, struct spile_stripe *stripe)
{
	unsigned int number = stripe->reserved;

	if (number)
		stripe->reserved = spile_element(table, number)->next;
	return number;
}

/* Frees a deleted element. The caller holds the stripe, so no other CPU adds to the list. */
static __always_inline void give_back(const struct spile_table *table, struct spile_stripe *stripe,
				      unsigned int number)
{
	if (spile_likely(!READ_ONCE(stripe->spare)))
		/* Release: pairs with the xchg() in take_deleted(). */
		smp_store_release(&stripe->spare, number);
	else
		push_free(table, stripe, number, number);
}

/* The same for a table that may wrap, where the run may create the element again. */
static void give_back_any(const struct spile_table *table, struct spile_stripe *stripe,
			  unsigned int number)
{
	if (stripe->reserves)
		reserve(table, stripe, number);
	else
		give_back(table, stripe, number);
}

/*
 * Takes a run of elements that were never used, and have cache lines of their own: what two CPUs
 * use at the same time, with different stripes, shares none. Returns the first one, and frees the
 * others for the stripe; 0 if none is left.
 */
static unsigned int take_run(struct spile_table *table, struct spile_stripe *stripe)
{
	__u64 used = READ_ONCE(table->used);

	while ((__u32)used < table->most) {
		unsigned int first = (__u32)used + 1, i;
		unsigned int last = min(first | table->run_mask, table->most);
		__u64 taken = used - (__u32)used + last + (first < last ? SPILE_TAKING : 0);
		__u64 seen = cmpxchg(&table->used, used, taken);

		if (seen != used) {
			used = seen;
			continue;
		}
		if (first == last)
			return first;
		for (i = first + 1; i < last; i++)
			WRITE_ONCE(spile_element(table, i)->next, i + 1);
		push_free(table, stripe, first + 1, last);
		/* Release: the list before it; pairs with the acquire in wait_for_runs(). */
		__atomic_fetch_sub(&table->used, SPILE_TAKING, __ATOMIC_RELEASE);
		return first;
	}
	return 0;
}

/*
 * No unused element is left: waits, for a bounded time, for CPUs that are about to free the rest
 * of a run. They have interrupts off, and wait for nobody.
 */
static void wait_for_runs(const struct spile_table *table)
{
	unsigned int tries = 0;

	/* Acquire: their lists; pairs with the release in take_run(). */
	while (smp_load_acquire(&table->used) >= SPILE_TAKING && tries++ < RUN_TRIES)
		cpu_relax();
}

/* Takes an element for a stripe whose free list is empty; 0 if all are in use. */
static noinline unsigned int take_elsewhere(struct spile_table *table, struct spile_stripe *stripe)
{
	unsigned int mine = stripe - table->stripes;
	unsigned int number = take_run(table, stripe);
	unsigned int i;

	if (spile_likely(number))
		return number;
	wait_for_runs(table);
	for (i = 1; i < table->stripe_count && !number; i++)
		number = take_deleted(table, &table->stripes[(mine + i) % table->stripe_count]);
	return number;
}

/* Unlinks the oldest element of a striped table, of which the caller holds all stripes. */
static noinline unsigned int drop_oldest(struct spile_table *table)
{
	struct spile_stripe *from = NULL;
	unsigned int number = 0, i;
	__u64 least = 0;

	for (i = 0; i < table->stripe_count; i++) {
		unsigned int oldest = table->stripes[i].oldest;
		__u64 sequence;

		if (!oldest)
			continue;
		sequence = spile_element(table, oldest)->sequence;
		if (from && sequence >= least)
			continue;
		from = &table->stripes[i];
		number = oldest;
		least = sequence;
	}
	if (from)
		unlink_element(table, from, spile_element(table, number), number);
	return number;
}

/* A free element for a stripe that the caller holds; 0 if there is none. */
static __always_inline unsigned int take_free(struct spile_table *table,
					      struct spile_stripe *stripe)
{
	unsigned int number = take_deleted(table, stripe);

	return spile_likely(number) ? number : take_elsewhere(table, stripe);
}

/* An element for a stripe of a table that wraps, which the caller holds with all others or not. */
static noinline unsigned int take_wrapping(struct spile_table *table, struct spile_stripe *stripe)
{
	unsigned int number = take_reserved(table, stripe);

	if (number || stripe->reserves)
		return number;
	number = take_free(table, stripe);
	return number ? number : drop_oldest(table);
}

/* The string, truncated to the maximum string length. */
static inline struct spile_string within_limit(struct spile_string s)
{
	s.length = min(s.length, spile_script.string_bytes - 1);
	return s;
}

static inline bool is_long_text(struct spile_string s)
{
	return spile_unlikely(s.length >= spile_script.slot_bytes);
}

/* kept: the number of the stored text if the string is a long one, else ignored. */
static void write_slot(struct spile_slot *slot, struct spile_string s, unsigned int kept)
{
	if (is_long_text(s)) {
		WRITE_ONCE(slot->kept, kept);
	} else {
		memmove(slot->text, s.text, s.length);	/* may be this very slot's */
		slot->text[s.length] = 0;
	}
	WRITE_ONCE(slot->length, s.length);
}

/* Zeros after a short text, so that words of it can be compared (spile_is_short()). */
static void pad_slot(struct spile_slot *slot, unsigned int length)
{
	enum { BYTES = 16 };

	if (length < BYTES && spile_script.slot_bytes >= BYTES)
		memset(slot->text + length, 0, BYTES - length);
}

/* The words at the start of a long text that fit into an element. */
static struct spile_string first_words(struct spile_string s)
{
	unsigned int length = spile_script.slot_bytes - 1;

	s.length = length;
	while (length && s.text[length] != ' ')
		length--;
	if (length)
		s.length = length;
	return s;
}

/*
 * Stores a value. If there is no memory for a long one, only its first words are stored, and the
 * truncation is counted.
 */
static void write_value(struct spile_slot *slot, struct spile_string s)
{
	unsigned int kept = 0;

	s = within_limit(s);
	if (is_long_text(s)) {
		kept = spile_keep_text(s);
		if (!kept) {
			__atomic_fetch_add(&spile_kept.cut, 1, __ATOMIC_RELAXED);
			s = first_words(s);
		}
	}
	write_slot(slot, s, kept);
}

/*
 * In place of an element's number: there was no memory for a long key. The element was not
 * created, and this is counted.
 */
enum { NOT_KEPT = ~0u };

/*
 * Stores the keys that are long strings, and gives their numbers. False if there is no memory for
 * one.
 */
static inline bool keep_keys(const struct spile_map *map, const union spile_key *keys,
			     unsigned int *kept)
{
	unsigned int i;

	for (i = 0; i < map->keys; i++) {
		kept[i] = 0;
		if (!(map->string_keys >> i & 1) || !is_long_text(within_limit(keys[i].text)))
			continue;
		kept[i] = spile_keep_text(within_limit(keys[i].text));
		if (!kept[i]) {
			__atomic_fetch_add(&spile_kept.refused, 1, __ATOMIC_RELAXED);
			return false;
		}
	}
	return true;
}

static void write_keys(struct spile_table *table, struct spile_element *element,
		       const union spile_key *keys, const unsigned int *kept)
{
	const struct spile_map *map = table->map;
	unsigned int i;

	for (i = 0; i < map->keys; i++) {
		void *mine = spile_element_key(table, element, i);

		if (map->string_keys >> i & 1) {
			struct spile_string text = within_limit(keys[i].text);

			write_slot(mine, text, kept[i]);
			pad_slot(mine, text.length);
		} else {
			*(spile_long *)mine = keys[i].number;
		}
	}
}

/* Links the element as the last one of its stripe and the first one of its bucket. */
static __always_inline void link_element(struct spile_table *table, struct spile_stripe *stripe,
					 struct spile_element *element, unsigned int number,
					 unsigned int hash)
{
	unsigned int newest = stripe->newest;
	unsigned int *bucket;

	element->sequence = stripe->sequence;
	element->older = newest;
	element->newer = 0;
	if (newest)
		spile_element(table, newest)->newer = number;
	else
		stripe->oldest = number;
	stripe->newest = number;
	stripe->count++;

	bucket = spile_bucket(table, hash);
	WRITE_ONCE(element->next, *bucket);
	/*
	 * Release: orders the element before its number; pairs with the acquires of numbers in
	 * spile_find_concurrently().
	 */
	smp_store_release(bucket, number);
}

/*
 * Links an element of a striped table whose keys are written. It needs no generation, because only
 * the holder of a stripe searches it.
 */
static __always_inline void link_in_stripe(struct spile_context *c, struct spile_table *table,
					   struct spile_stripe *stripe,
					   struct spile_element *element, unsigned int number,
					   unsigned int hash)
{
	__u64 now = spile_map_moment(c);

	element->hash = hash;
	stripe->sequence = now > stripe->sequence ? now : stripe->sequence + 1;
	link_element(table, stripe, element, number, hash);
}

/*
 * Creates an element of a striped table; 0 if the table is full, or NOT_KEPT. The value is left
 * from the last use.
 */
static noinline unsigned int make_in_stripe(struct spile_context *c, struct spile_table *table,
					    const union spile_key *keys, unsigned int hash)
{
	struct spile_stripe *stripe = spile_stripe_of(table, hash);
	unsigned int kept[SPILE_MAX_KEYS];
	struct spile_element *element;
	unsigned int number;

	if (!keep_keys(table->map, keys, kept))
		return NOT_KEPT;
	number = table->wraps ? take_wrapping(table, stripe) : take_free(table, stripe);
	if (spile_unlikely(!number))
		return 0;
	element = spile_element(table, number);
	write_keys(table, element, keys, kept);
	link_in_stripe(c, table, stripe, element, number, hash);
	return number;
}

/*
 * Creates an element; 0 if the table is full, or NOT_KEPT. The value is left from the last use,
 * or is 0 if it is counted.
 */
static unsigned int make_element(struct spile_context *c, struct spile_table *table,
				 const union spile_key *keys, unsigned int hash)
{
	const struct spile_map *map = table->map;
	struct spile_stripe *stripe = spile_stripe_of(table, hash);
	unsigned int kept[SPILE_MAX_KEYS];
	struct spile_element *element;
	unsigned int number;

	if (table->stripes_bytes)
		return make_in_stripe(c, table, keys, hash);
	if (!keep_keys(map, keys, kept))
		return NOT_KEPT;
	if (stripe->free) {
		number = stripe->free;
		element = spile_element(table, number);
		stripe->free = element->next;
	} else if (table->used < map->entries) {
		number = ++table->used;
		element = spile_element(table, number);
	} else if (map->wrap && stripe->oldest) {
		number = stripe->oldest;
		element = spile_element(table, number);
		/*
		 * Another CPU may be reading it (map_find.h). It trusts the keys only if the
		 * generation was even before it compared them and has not changed since.
		 */
		WRITE_ONCE(element->generation, element->generation + 1);
		/*
		 * Orders the odd generation before the new keys; pairs with smp_rmb() in
		 * spile_find_concurrently().
		 */
		smp_wmb();
		unlink_element(table, stripe, element, number);
	} else {
		return 0;
	}

	write_keys(table, element, keys, kept);
	if (map->counted)
		*(spile_long *)spile_element_value(table, element) = 0;
	element->hash = hash;
	stripe->sequence++;
	/*
	 * Orders the new keys before the even generation; pairs with its acquire in
	 * spile_find_concurrently().
	 */
	smp_wmb();
	WRITE_ONCE(element->generation, (element->generation | 1) + 1);
	link_element(table, stripe, element, number, hash);
	return number;
}

static void fail_overflow(struct spile_context *c, const struct spile_map *map)
{
	if (map->sized)
		spile_fail_text(c, "Array overflow, check size limit (%u)", map->entries);
	else
		spile_fail_text(c, "Array overflow, check MAXMAPENTRIES");
}

/*
 * Takes the result of make_element(). Returns 0 if no element was created, with an error if the
 * table is full.
 */
static inline unsigned int made_number(struct spile_context *c, const struct spile_table *table,
				       unsigned int number)
{
	if (spile_unlikely(number == NOT_KEPT))
		return 0;
	if (spile_unlikely(!number))
		fail_overflow(c, table->map);
	return number;
}

/*
 * Finds the element, or creates it and sets *made. Returns 0 if it cannot be created: with an
 * error if the table is full, without one if there is no memory for a long key.
 */
static inline unsigned int find_or_make(struct spile_context *c, struct spile_table *table,
					const union spile_key *keys, bool *made)
{
	unsigned int hash = hash_of(table, keys);
	unsigned int number = find_element(table, keys, hash);

	*made = false;
	if (spile_unlikely(!number)) {
		*made = true;
		number = made_number(c, table, make_element(c, table, keys, hash));
	}
	return number;
}

/*
 * Nothing else on this CPU can be adding one, because this handler owns the context. The holder
 * has interrupts off, so only a hypervisor can preempt it: that is waited for as long as for
 * the locks of a run that cannot be skipped, all waits of the run together.
 */
bool spile_making_begin(struct spile_context *c, struct spile_table *table)
{
	__u64 last = 0, now, passed;
	unsigned int polls;

	do {
		for (polls = 0; polls < MAKING_POLLS; polls++) {
			/* A full barrier: pairs with the release in spile_making_end(). */
			if (!READ_ONCE(table->making) && cmpxchg(&table->making, 0, 1) == 0)
				return true;
			cpu_relax();
		}
		now = spile_record_time();
		/* In an NMI during an update of the clock, time may go back. */
		passed = last && now > last ? now - last : 0;
		last = now;
	} while (spile_map_waited(c, passed) < SPILE_LATE_WAIT);
	spile_fail_text(c, "array '%s' is busy", table->map->name);
	return false;
}

void spile_making_end(struct spile_table *table)
{
	/* Release: publishes the changes; pairs with the cmpxchg() in spile_making_begin(). */
	smp_store_release(&table->making, 0);
}

struct spile_found spile_map_feed_new(struct spile_context *c, struct spile_table *table,
				      const union spile_key *keys)
{
	unsigned int hash = hash_of(table, keys);
	struct spile_found found = { 0 };

	if (!spile_making_begin(c, table))
		return found;
	/* Another CPU may have added it in the meantime. */
	found.number = find_element(table, keys, hash);
	if (!found.number)
		found.number = make_element(c, table, keys, hash);
	if (found.number && found.number != NOT_KEPT)
		found.generation = spile_element(table, found.number)->generation;
	spile_making_end(table);
	found.number = made_number(c, table, found.number);
	return found;
}

struct spile_found spile_map_feed(struct spile_context *c, struct spile_table *table,
				  const union spile_key *keys)
{
	unsigned int hash = hash_of(table, keys);
	struct spile_found found = spile_find_concurrently(table, hash, has_keys, keys);

	return spile_likely(found.number) ? found : spile_map_feed_new(c, table, keys);
}

static void delete_element(struct spile_table *table, unsigned int number)
{
	struct spile_element *element = spile_element(table, number);
	struct spile_stripe *stripe = spile_stripe_of(table, element->hash);

	unlink_element(table, stripe, element, number);
	if (table->stripes_bytes) {
		give_back_any(table, stripe, number);
		return;
	}
	element->next = stripe->free;
	stripe->free = number;
}

/* The run could not take a stripe, or all: it is skipped, or fails if it has had effects. */
static noinline void not_locked(struct spile_context *c)
{
	if (c->late)
		spile_fail_text(c, "the CPU that holds the lock of this array does not run");
	else
		c->stale |= SPILE_STALE_LOCKED;
}

static noinline bool hold_contended(struct spile_context *c, const struct spile_table *table,
				struct spile_stripe *stripe, bool another)
{
	if (spile_stripe_wait(c, table, stripe, another))
		return true;
	not_locked(c);
	return false;
}

static __always_inline bool hold(struct spile_context *c, const struct spile_table *table,
				 struct spile_held *held, unsigned int hash)
{
	struct spile_stripe *stripe = spile_stripe_of(table, hash);

	if (spile_unlikely(!spile_stripe_try(c, &stripe->holder, table->claimed)) &&
	    !hold_contended(c, table, stripe, false))
		return false;
	held->holder = &stripe->holder;
	held->hash = hash;
	return true;
}

/* Finds the element in a stripe, or all, that the run has taken. */
static __always_inline void find_held(const struct spile_table *table, struct spile_held *held,
				      const union spile_key *keys, unsigned int hash)
{
	unsigned int number = find_element(table, keys, hash);

	held->number = number;
	held->value = number ? spile_element_value(table, spile_element(table, number)) : NULL;
}

int spile_map_hold(struct spile_context *c, const struct spile_map *map, struct spile_held *held,
		   const union spile_key *keys)
{
	const struct spile_table *table = spile_table_of(map);
	unsigned int hash = hash_of(table, keys);

	if (!hold(c, table, held, hash))
		return 0;
	memcpy(held->keys, keys, map->keys * sizeof(*keys));
	find_held(table, held, keys, hash);
	return 1;
}

/* False if no element is free. */
static __always_inline bool reserve_one(struct spile_table *table, struct spile_stripe *stripe)
{
	unsigned int number = take_free(table, stripe);

	if (spile_unlikely(!number))
		return false;
	reserve(table, stripe, number);
	return true;
}

/* Takes all stripes; spile_map_release_wrapping() releases them. */
static noinline bool hold_all(struct spile_context *c, const struct spile_table *table,
			      struct spile_held *held, struct spile_stripe *stripe)
{
	if (!spile_stripes_lock(c, table)) {
		not_locked(c);
		return false;
	}
	held->holder = &stripe->holder;
	return true;
}

/*
 * If the element is absent, one is reserved for it: others that find none left then take all
 * stripes, and so wait until this run has used or returned it. So one is dropped only if all are
 * in use.
 */
int spile_map_hold_wrapping(struct spile_context *c, const struct spile_map *map,
			    struct spile_held *held, const union spile_key *keys)
{
	struct spile_table *table = spile_table_of(map);
	unsigned int hash = hash_of(table, keys);
	struct spile_stripe *stripe = spile_stripe_of(table, hash);

	if (!hold(c, table, held, hash))
		return 0;
	memcpy(held->keys, keys, map->keys * sizeof(*keys));
	find_held(table, held, keys, hash);
	stripe->reserves = 1;
	if (held->value || spile_likely(reserve_one(table, stripe)))
		return 1;
	spile_map_release_wrapping(map, held);
	if (!hold_all(c, table, held, stripe))
		return 0;
	/* It may have been created in the meantime. */
	find_held(table, held, keys, hash);
	return 1;
}

void spile_map_release_wrapping(const struct spile_map *map, struct spile_held *held)
{
	struct spile_table *table = spile_table_of(map);
	struct spile_stripe *stripe;
	unsigned int reserved;

	if (spile_unlikely(!held->holder))
		return;
	stripe = container_of(held->holder, struct spile_stripe, holder);
	if (spile_unlikely(!stripe->reserves)) {
		held->holder = NULL;
		spile_stripes_unlock(table);
		return;
	}
	stripe->reserves = 0;
	while ((reserved = take_reserved(table, stripe)))
		give_back(table, stripe, reserved);
	spile_map_release(held);
}

int spile_map_hold_whole(struct spile_context *c, const struct spile_map *map)
{
	if (spile_stripes_lock(c, spile_table_of(map)))
		return 1;
	not_locked(c);
	return 0;
}

void spile_map_release_whole(const struct spile_map *map)
{
	spile_stripes_unlock(spile_table_of(map));
}

void spile_map_want(const struct spile_map *map, struct spile_held *held,
		    const union spile_key *keys)
{
	held->hash = hash_of(spile_table_of(map), keys);
	memcpy(held->keys, keys, map->keys * sizeof(*keys));
}

static bool hold_another(struct spile_context *c, const struct spile_table *table,
			 struct spile_held *held)
{
	struct spile_stripe *stripe = spile_stripe_of(table, held->hash);

	if (!spile_stripe_try_another(c, &stripe->holder) &&
	    !hold_contended(c, table, stripe, true))
		return false;
	held->holder = &stripe->holder;
	return true;
}

/*
 * Runs take stripes of one array in ascending order, so they never wait for each other in a
 * circle.
 */
static bool hold_ascending(struct spile_context *c, const struct spile_table *table,
			   struct spile_held *held, unsigned int count)
{
	const struct spile_stripe *last = NULL;
	unsigned int i;

	for (;;) {
		struct spile_held *next = NULL;

		for (i = 0; i < count; i++) {
			const struct spile_stripe *stripe = spile_stripe_of(table, held[i].hash);

			if ((!last || stripe > last) &&
			    (!next || stripe < spile_stripe_of(table, next->hash)))
				next = &held[i];
		}
		if (!next)
			return true;
		if (last ? !hold_another(c, table, next) : !hold(c, table, next, next->hash))
			return false;
		last = spile_stripe_of(table, next->hash);
	}
}

/* The same as for one element of an array that wraps. The stripes are held. */
static bool reserve_absent(struct spile_table *table, struct spile_held *held, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		spile_stripe_of(table, held[i].hash)->reserves = 1;
	for (i = 0; i < count; i++)
		if (!find_element(table, held[i].keys, held[i].hash) &&
		    !reserve_one(table, spile_stripe_of(table, held[i].hash)))
			return false;
	return true;
}

int spile_map_hold_several(struct spile_context *c, const struct spile_map *map,
			   struct spile_held *held, unsigned int count, int drops)
{
	struct spile_table *table = spile_table_of(map);
	bool all = hold_ascending(c, table, held, count);
	unsigned int i;

	if (!drops)
		return all;
	if (all && reserve_absent(table, held, count))
		return 1;
	for (i = 0; i < count; i++) {
		if (!all && held[i].holder)
			spile_map_release(&held[i]);
		else
			spile_map_release_wrapping(map, &held[i]);
	}
	return all && hold_all(c, table, held, spile_stripe_of(table, held->hash));
}

int spile_map_hold_long(struct spile_context *c, const struct spile_map *map,
			struct spile_held *held, spile_long key)
{
	const struct spile_table *table = spile_table_of(map);
	unsigned int hash = spile_hash_long(table, key);
	unsigned int number;

	if (spile_unlikely(!hold(c, table, held, hash)))
		return 0;
	held->keys[0].number = key;
	held->value = NULL;
	for (number = *spile_bucket(table, hash); number;) {
		struct spile_element *element = spile_element(table, number);

		if (spile_likely(spile_long_key(element) == key)) {
			held->number = number;
			/* It follows the only key. */
			held->value = (char *)(element + 1) + sizeof(key);
			break;
		}
		number = element->next;
	}
	return 1;
}

/* The stripe of an element that is held. */
static inline struct spile_stripe *held_stripe(const struct spile_held *held)
{
	return container_of(held->holder, struct spile_stripe, holder);
}

char *spile_held_make(struct spile_context *c, const struct spile_map *map, struct spile_held *held)
{
	struct spile_table *table = spile_table_of(map);
	unsigned int number = made_number(c, table, make_in_stripe(c, table, held->keys,
								   held->hash));
	char *value;

	if (spile_unlikely(!number))
		return NULL;
	value = spile_element_value(table, spile_element(table, number));
	/* Clears a number, or both fields of a slot. */
	*(spile_long *)value = 0;
	held->number = number;
	held->value = value;
	return value;
}

char *spile_held_make_long(struct spile_context *c, const struct spile_map *map,
			   struct spile_held *held)
{
	struct spile_table *table = spile_table_of(map);
	struct spile_stripe *stripe = held_stripe(held);
	unsigned int number = take_free(table, stripe);
	struct spile_element *element;
	spile_long *key;

	if (spile_unlikely(!number)) {
		fail_overflow(c, map);
		return NULL;
	}
	element = spile_element(table, number);
	key = (spile_long *)(element + 1);
	key[0] = held->keys[0].number;
	/* The value follows the only key: a number, or both fields of a slot. */
	key[1] = 0;
	link_in_stripe(c, table, stripe, element, number, held->hash);
	held->number = number;
	return held->value = (char *)&key[1];
}

/* Unlinks the element that is held; returns its number. */
static __always_inline unsigned int unlink_held(struct spile_table *table, struct spile_held *held)
{
	unsigned int number = held->number;

	held->value = NULL;
	unlink_element(table, held_stripe(held), spile_element(table, number), number);
	return number;
}

void spile_held_drop(const struct spile_map *map, struct spile_held *held)
{
	struct spile_table *table = spile_table_of(map);

	give_back(table, held_stripe(held), unlink_held(table, held));
}

void spile_held_drop_wrapping(const struct spile_map *map, struct spile_held *held)
{
	struct spile_table *table = spile_table_of(map);

	give_back_any(table, held_stripe(held), unlink_held(table, held));
}

struct spile_string spile_held_text(const struct spile_held *held)
{
	return held->value ? spile_slot_string((const struct spile_slot *)held->value) :
			     SPILE_LITERAL("");
}

void spile_held_set_text(struct spile_context *c, const struct spile_map *map,
			 struct spile_held *held, struct spile_string value)
{
	char *at = held->value ? held->value : spile_held_made(c, map, held);

	if (at)
		write_value((struct spile_slot *)at, value);
}

spile_long spile_map_long(struct spile_context *c, const struct spile_map *map,
			  const union spile_key *keys)
{
	const struct spile_table *table = spile_table_of(map);
	unsigned int number = spile_map_find(table, keys);

	if (map->counted) {
		spile_debit(c, spile_map_area_count);
		return number ? spile_counts_merge(table, number) : 0;
	}
	return number ? *(spile_long *)spile_element_value(table, spile_element(table, number)) : 0;
}

struct spile_string spile_map_text(struct spile_context *c, const struct spile_map *map,
				   const union spile_key *keys)
{
	const struct spile_table *table = spile_table_of(map);
	unsigned int number = spile_map_find(table, keys);

	(void)c;
	if (!number)
		return SPILE_LITERAL("");
	return spile_slot_string(spile_element_value(table, spile_element(table, number)));
}

/* The first element that matches the slice; 0 if there is none or the run must end. */
static unsigned int first_match(struct spile_context *c, const struct spile_table *table,
				const union spile_key *keys, unsigned int any)
{
	unsigned int number, i;

	for (i = 0; i < spile_stripe_count(table); i++) {
		for (number = table->stripes[i].oldest; number;
		     number = spile_element(table, number)->newer) {
			if (!spile_charge_steps(c, spile_map_match_steps(table, keys)))
				return 0;
			if (spile_map_matches(table, spile_element(table, number), keys, any))
				return number;
		}
	}
	return 0;
}

int spile_map_has(struct spile_context *c, const struct spile_map *map, const union spile_key *keys,
		  unsigned int any)
{
	const struct spile_table *table = spile_table_of(map);

	if (!map->keys)
		return 1;
	if (!any)
		return spile_map_find(table, keys) != 0;
	return first_match(c, table, keys, any) != 0;
}

void spile_map_set_long(struct spile_context *c, const struct spile_map *map,
			const union spile_key *keys, spile_long value)
{
	struct spile_table *table = spile_table_of(map);
	bool made;
	unsigned int number = find_or_make(c, table, keys, &made);

	if (number && map->counted)
		spile_counts_set(table, number, value);
	else if (number)
		*(spile_long *)spile_element_value(table, spile_element(table, number)) = value;
}

void spile_map_set_text(struct spile_context *c, const struct spile_map *map,
			const union spile_key *keys, struct spile_string value)
{
	struct spile_table *table = spile_table_of(map);
	bool made;
	unsigned int number = find_or_make(c, table, keys, &made);

	if (number)
		write_value(spile_element_value(table, spile_element(table, number)), value);
}

static noinline spile_long add_any(struct spile_context *c, struct spile_table *table,
				   const union spile_key *keys, spile_long delta)
{
	bool made;
	unsigned int number = find_or_make(c, table, keys, &made);
	spile_long *value;

	if (spile_unlikely(!number))
		return 0;
	value = spile_element_value(table, spile_element(table, number));
	if (table->map->counted) {
		spile_debit(c, spile_map_area_count);
		spile_counts_merge(table, number);
	} else if (spile_unlikely(made)) {
		*value = 0;
	}
	return *value = spile_add(*value, delta);
}

spile_long spile_map_add(struct spile_context *c, const struct spile_map *map,
			 const union spile_key *keys, spile_long delta)
{
	return add_any(c, spile_table_of(map), keys, delta);
}

static noinline spile_long add_new(struct spile_context *c, struct spile_table *table,
				   spile_long number, spile_long delta)
{
	union spile_key key = { .number = number };

	return add_any(c, table, &key, delta);
}

spile_long spile_map_add_one(struct spile_context *c, const struct spile_map *map, spile_long key,
			     spile_long delta)
{
	struct spile_table *table = spile_table_of(map);
	unsigned int number = *spile_bucket(table, spile_hash_long(table, key));

	while (number) {
		struct spile_element *element = spile_element(table, number);

		if (spile_likely(spile_long_key(element) == key)) {
			spile_long *value = spile_element_value(table, element);

			return *value = spile_add(*value, delta);
		}
		number = element->next;
	}
	return add_new(c, table, key, delta);
}

void spile_map_delete(struct spile_context *c, const struct spile_map *map,
		      const union spile_key *keys, unsigned int any)
{
	struct spile_table *table = spile_table_of(map);
	unsigned int number, next, i;

	if (!map->keys) {
		spile_map_clear(c, map);
		return;
	}
	if (!any) {
		number = spile_map_find(table, keys);
		if (number)
			delete_element(table, number);
		return;
	}
	for (i = 0; i < spile_stripe_count(table); i++) {
		for (number = table->stripes[i].oldest; number; number = next) {
			next = spile_element(table, number)->newer;
			if (!spile_charge_steps(c,
						spile_map_match_steps(table, keys) + DELETE_STEPS))
				return;
			if (spile_map_matches(table, spile_element(table, number), keys, any))
				delete_element(table, number);
		}
	}
}

void spile_map_clear(struct spile_context *c, const struct spile_map *map)
{
	struct spile_table *table = spile_table_of(map);
	unsigned int i;

	if (!map->keys) {
		spile_debit(c, spile_stats_bucket_steps(&map->stats));
		spile_stats_reset_everywhere(table);
	}
	/* One by one: a large array may have far more buckets than elements. */
	for (i = 0; i < spile_stripe_count(table); i++)
		while (table->stripes[i].oldest && spile_charge_steps(c, DELETE_STEPS))
			delete_element(table, table->stripes[i].oldest);
}

void spile_map_layout(struct spile_table *table, const struct spile_map *map, size_t *local)
{
	enum { FEWEST_BUCKETS = 2, MOST_BITS = 31 };
	unsigned int offset = sizeof(struct spile_element);
	unsigned int bits = FEWEST_BUCKETS;
	unsigned int i;

	table->map = map;
	table->stripes = &table->own;
	table->claimed = &unclaimed;
	table->stripe_shift = 32;
	table->stripe_count = 1;
	if (map->value == SPILE_VALUE_STATS) {
		table->keeps_more = map->stats.variance ||
				    map->stats.histogram != SPILE_HISTOGRAM_NONE;
		table->local_stride = spile_stats_bytes(&map->stats);
	}
	if (map->counted)
		table->local_stride = sizeof(struct spile_share);
	table->local = *local;
	if (!map->keys) {
		*local += table->local_stride;
		return;
	}
	if (table->local_stride)
		table->group_count = (map->entries >> SPILE_GROUP_SHIFT) + 1;
	*local += sizeof(char *) * (size_t)table->group_count;

	for (i = 0; i < map->keys; i++) {
		table->keys[i] = offset;
		offset += map->string_keys >> i & 1 ? spile_slot_bytes() : sizeof(spile_long);
	}
	table->value = offset;
	offset += map->value == SPILE_VALUE_STRING ? spile_slot_bytes() : sizeof(spile_long);
	table->stride = offset;
	table->single_long = map->keys == 1 && !(map->string_keys & 1);
	table->single_text = map->keys == 1 && map->string_keys & 1;
	table->wraps = map->wrap;
	table->most = map->entries;

	if (map->striped) {
		bits = map->wrap ? SPILE_WRAP_STRIPE_BITS : SPILE_STRIPE_BITS;
		table->stripe_shift = 32 - bits;
		table->stripe_count = 1u << bits;
		table->stripes_bytes = sizeof(*table->stripes) * table->stripe_count;
		/* A cache line of buckets for each stripe: none belongs to two. */
		bits += SPILE_LINE_BUCKET_BITS;
		/* As few elements as make up whole cache lines; the stride is a multiple of 8. */
		if (offset % SPILE_LINE_BYTES)
			table->run_mask = SPILE_LINE_BYTES / (offset & -offset) - 1;
	}
	while (bits < MOST_BITS && 1u << bits < map->entries)
		bits++;
	table->bucket_shift = 32 - bits;
	table->elements_bytes = (size_t)offset * ((size_t)map->entries + 1);
	table->buckets_bytes = sizeof(*table->buckets) << bits;
}
