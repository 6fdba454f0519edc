// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of code that was unloaded.
 *
 * Entries stay until the end of the session, because a script may at any time print addresses
 * that it has stored; but there are never more than PAST_MOST pieces of code. If a piece without
 * a number is dropped, its place is remembered, so that code loaded there gets a number. These
 * places do not overlap, so there are not many.
 *
 * Handlers read the lists under RCU; past_lock is for those who change them.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "features.h"
#include "module_symbols.h"
#include "past_code.h"
#include "ring.h"
#include "symbol.h"

enum {
	PAST_MOST = 64,
	PAST_MOST_BYTES = 8 << 20,
};

struct past_symbol {
	u32 offset;	/* from past_code.start */
	u32 name;	/* in past_code.names; in the order of the module's own table */
};

struct past_code {
	struct list_head link;
	struct rcu_head rcu;
	u64 until;			/* no two have the same */
	u64 number;			/* 0: none */
	unsigned long start;
	unsigned long bytes;		/* of the code */
	size_t size;			/* of this */
	bool of_init;
	char module[MODULE_NAME_LEN];
	const char *names;
	unsigned int count;
	struct past_symbol symbols[];	/* by offset */
};

/* Loaded code that has a number. */
struct live_code {
	struct list_head link;
	struct rcu_head rcu;
	u64 number;
	unsigned long start;
	unsigned long bytes;
};

static DEFINE_MUTEX(past_lock);
/* Changed under the lock; the newest is the first. */
static LIST_HEAD(past_codes);
/* Places of dropped code without a number; changed under the lock. */
static LIST_HEAD(past_places);
/* Changed under the lock. */
static LIST_HEAD(live_codes);
static u64 last_number;
static unsigned int past_count;
static size_t past_bytes;
static u64 forgotten;
static u64 changes;

void spile_past_code_lock(void)
{
	mutex_lock(&past_lock);
}

void spile_past_code_unlock(void)
{
	mutex_unlock(&past_lock);
}

u64 spile_past_code_forgotten(void)
{
	return forgotten;
}

#ifdef CONFIG_KALLSYMS
/* Name of a symbol in that code, with its offset there; NULL if it is not in the code. */
static const char *symbol_in(const struct mod_kallsyms *table, unsigned int i,
			     const struct past_code *code, u32 *offset)
{
	const Elf_Sym *symbol = &table->symtab[i];
	const char *name = table->strtab + symbol->st_name;

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_value - code->start >= code->bytes ||
	    !*name || spile_module_symbol_is_mark(name))
		return NULL;
	*offset = symbol->st_value - code->start;
	return name;
}

static int compare_places(const void *left, const void *right)
{
	const struct past_symbol *a = left, *b = right;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/*
 * Copies the symbols of a module's code. Called from the notifier, so they do not change. NULL
 * if there is no memory.
 */
static struct past_code *copy_code(struct module *module, unsigned long start, unsigned long bytes)
{
	const struct past_code range = { .start = start, .bytes = bytes };
	const struct mod_kallsyms *table = rcu_dereference_raw(module->kallsyms);
	unsigned int symbols = table ? table->num_symtab : 0, count = 0, i;
	struct past_code *code;
	size_t names = 0, size;
	const char *name;
	char *to;
	u32 offset;

	for (i = 0; i < symbols; i++) {
		name = symbol_in(table, i, &range, &offset);
		if (!name)
			continue;
		count++;
		names += strlen(name) + 1;
	}
	size = struct_size(code, symbols, count) + names;
	code = kvmalloc(size, GFP_KERNEL);
	if (!code)
		return NULL;
	*code = range;
	code->size = size;
	strscpy(code->module, module->name, sizeof(code->module));
	to = (char *)&code->symbols[count];
	code->names = to;
	for (i = 0; i < symbols; i++) {
		name = symbol_in(table, i, &range, &offset);
		if (!name)
			continue;
		code->symbols[code->count++] = (struct past_symbol){ offset, to - code->names };
		to += strlen(name) + 1;
		memcpy(to - strlen(name) - 1, name, strlen(name) + 1);
	}
	sort(code->symbols, count, sizeof(*code->symbols), compare_places, NULL);
	return code;
}
#else
/* Without CONFIG_KALLSYMS modules have no symbols in memory. */
static struct past_code *copy_code(struct module *module, unsigned long start, unsigned long bytes)
{
	return NULL;
}
#endif

static void drop_code(struct past_code *code)
{
	list_del_rcu(&code->link);
	past_count--;
	past_bytes -= code->size;
	kvfree_rcu(code, rcu);
}

/*
 * The place of unloaded code, or of code that is not remembered: new code there gets a
 * number.
 */
static void keep_place(unsigned long start, unsigned long bytes)
{
	struct live_code *place = kmalloc(sizeof(*place), GFP_KERNEL | __GFP_NOFAIL);

	*place = (struct live_code){ .start = start, .bytes = bytes };
	list_add_rcu(&place->link, &past_places);
}

static struct past_code *oldest_code(void)
{
	return list_empty(&past_codes) ? NULL :
					 list_last_entry(&past_codes, struct past_code, link);
}

/* Drops the oldest until the limits are met. */
static void forget_old(void)
{
	struct past_code *code;

	while ((code = oldest_code()) &&
	       code != list_first_entry(&past_codes, struct past_code, link) &&
	       (past_count > PAST_MOST || past_bytes > PAST_MOST_BYTES)) {
		forgotten = code->until;
		if (!code->number)
			keep_place(code->start, code->bytes);
		drop_code(code);
	}
}

static struct live_code *live_code_at(unsigned long address)
{
	struct live_code *code;

	list_for_each_entry_rcu(code, &live_codes, link, lockdep_is_held(&past_lock))
		if (address - code->start < code->bytes)
			return code;
	return NULL;
}

static bool overlap(unsigned long start, unsigned long bytes, unsigned long other,
		    unsigned long other_bytes)
{
	return start < other + other_bytes && other < start + bytes;
}

/* Whether code without a number was there in this session. */
static bool was_used(unsigned long start, unsigned long bytes)
{
	const struct past_code *code;
	const struct live_code *place;

	list_for_each_entry(code, &past_codes, link)
		if (!code->number && overlap(start, bytes, code->start, code->bytes))
			return true;
	list_for_each_entry(place, &past_places, link)
		if (overlap(start, bytes, place->start, place->bytes))
			return true;
	return false;
}

/* Gives a number to one kind of code of a module that is being loaded, if it needs one. */
static void number_code(struct module *module, bool of_init)
{
	unsigned long bytes, start = spile_module_code(module, of_init, &bytes);
	struct live_code *code;

	if (!bytes || !(of_init || was_used(start, bytes)))
		return;
	code = kmalloc(sizeof(*code), GFP_KERNEL | __GFP_NOFAIL);
	WRITE_ONCE(last_number, last_number + 1);
	*code = (struct live_code){ .number = last_number, .start = start, .bytes = bytes };
	list_add_rcu(&code->link, &live_codes);
}

/* Removes the number of code that is unloaded. */
static u64 take_number(unsigned long start)
{
	struct live_code *code = live_code_at(start);
	u64 number;

	if (!code)
		return 0;
	number = code->number;
	list_del_rcu(&code->link);
	kfree_rcu(code, rcu);
	return number;
}

/* Remembers one kind of code of the module as it is now. */
static void keep_code(struct module *module, bool of_init, u64 now)
{
	unsigned long bytes, start = spile_module_code(module, of_init, &bytes);
	struct past_code *code;
	u64 number;

	if (!bytes)
		return;
	number = take_number(start);
	code = copy_code(module, start, bytes);
	if (!code) {
		forgotten = now;
		if (!number)
			keep_place(start, bytes);
		return;
	}
	code->until = now;
	code->number = number;
	code->of_init = of_init;
	list_add_rcu(&code->link, &past_codes);
	past_count++;
	past_bytes += code->size;
}

void spile_past_code_event(unsigned long event, struct module *module)
{
	u64 now = ktime_get_mono_fast_ns();

	mutex_lock(&past_lock);
	if (event == MODULE_STATE_COMING) {
		number_code(module, false);
		number_code(module, true);
	}
	if (event != MODULE_STATE_LIVE && event != MODULE_STATE_GOING) {
		mutex_unlock(&past_lock);
		return;
	}
	keep_code(module, true, now);
	if (event == MODULE_STATE_GOING)
		keep_code(module, false, now + 1);
	forget_old();
	/*
	 * Published after the entry is in the list: a reader that sees the change asks again and
	 * finds it.
	 */
	spile_rings_publish_changes(++changes);
	mutex_unlock(&past_lock);
}

/* As in the kernel: the first of several symbols at an address; the next address ends it. */
static void text_in(const struct past_code *code, char *text, unsigned long address)
{
	u32 wanted = address - code->start, begin, end = code->bytes;
	unsigned int low = 0, high = code->count;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (code->symbols[middle].offset <= wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low) {
		scnprintf(text, SPILE_SYMBOL_TEXT, "0x%lx", address);
		return;
	}
	if (low < code->count)
		end = code->symbols[low].offset;
	begin = code->symbols[low - 1].offset;
	while (low > 1 && code->symbols[low - 2].offset == begin)
		low--;
	scnprintf(text, SPILE_SYMBOL_TEXT, "%s+%#x/%#x [%s]",
		  code->names + code->symbols[low - 1].name, wanted - begin, end - begin,
		  code->module);
}

/* Compares "NAME+OFFSET" and "[MODULE]", but not sizes, which the kernel computes differently. */
static bool is_same_symbol(const char *one, const char *two)
{
	size_t length = strcspn(one, "/ ");
	const char *in_one = strchr(one, '['), *in_two = strchr(two, '[');

	return length == strcspn(two, "/ ") && !strncmp(one, two, length) && in_one && in_two &&
	       !strcmp(in_one, in_two);
}

bool spile_past_code_text(char *text, unsigned long address, u64 time, u64 *until)
{
	struct past_code *code;

	/* The first one that was unloaded after that time; earlier entries may be of other code. */
	list_for_each_entry_reverse(code, &past_codes, link) {
		if (code->until < time || address - code->start >= code->bytes)
			continue;
		text_in(code, text, address);
		*until = code->until;
		return true;
	}
	return false;
}

bool spile_past_code_latest(char *text, unsigned long address)
{
	const struct past_code *code, *found = NULL;

	/* Init sections come last: they are loaded where other code was, and run only once. */
	list_for_each_entry(code, &past_codes, link)
		if (address - code->start < code->bytes &&
		    (!found || (found->of_init && !code->of_init)))
			found = code;
	if (found)
		text_in(found, text, address);
	return found;
}

bool spile_past_code_differs(const char *text, unsigned long address)
{
	const struct past_code *code;
	const struct live_code *place;
	bool differs = false;
	char *other;

	list_for_each_entry(place, &past_places, link)
		if (address - place->start < place->bytes)
			return true;
	other = kmalloc(SPILE_SYMBOL_TEXT, GFP_KERNEL | __GFP_NOFAIL);
	list_for_each_entry(code, &past_codes, link) {
		if (code->of_init || address - code->start >= code->bytes)
			continue;
		text_in(code, other, address);
		differs |= !is_same_symbol(text, other);
	}
	kfree(other);
	return differs;
}

bool spile_past_code_any(void)
{
	return !list_empty(&past_codes) || !list_empty(&past_places) || READ_ONCE(last_number);
}

u64 spile_code_number(unsigned long address)
{
	const struct live_code *code;
	u64 number;

	if (list_empty(&live_codes))
		return 0;
	rcu_read_lock();
	code = live_code_at(address);
	number = code ? code->number : 0;
	rcu_read_unlock();
	return number;
}

/* Under RCU. The unloaded code that had this number at the address. */
static const struct past_code *numbered_code(unsigned long address, u64 number)
{
	const struct past_code *code;

	list_for_each_entry_rcu(code, &past_codes, link, lockdep_is_held(&past_lock))
		if (code->number == number && address - code->start < code->bytes)
			return code;
	return NULL;
}

/* Under RCU. Whether the code that had this number at the address was unloaded and dropped. */
static bool is_forgotten(unsigned long address, u64 number)
{
	const struct live_code *code;

	if (number) {
		code = live_code_at(address);
		return !code || code->number != number;
	}
	list_for_each_entry_rcu(code, &past_places, link, lockdep_is_held(&past_lock))
		if (address - code->start < code->bytes)
			return true;
	return false;
}

u64 spile_past_code_time(unsigned long address, u64 number)
{
	const struct past_code *code;
	u64 time;

	rcu_read_lock();
	code = numbered_code(address, number);
	if (code)
		time = code->until;
	else
		time = is_forgotten(address, number);
	rcu_read_unlock();
	return time;
}

void spile_stored_symbol_text(char *text, unsigned long address, u64 number)
{
	const struct past_code *code;

	rcu_read_lock();
	code = numbered_code(address, number);
	if (code)
		text_in(code, text, address);
	else if (is_forgotten(address, number))
		scnprintf(text, SPILE_SYMBOL_TEXT, "0x%lx", address);
	else
		spile_symbol_text(text, address);
	rcu_read_unlock();
}

void spile_past_code_exit(void)
{
	struct live_code *live, *next;
	struct past_code *code;

	while ((code = oldest_code()))
		drop_code(code);
	list_splice(&past_places, &live_codes);
	list_for_each_entry_safe(live, next, &live_codes, link)
		kfree(live);
}
