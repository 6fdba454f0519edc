// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at function entries, called by ftrace without a kprobe in between. All sites share two
 * ftrace_ops (before 5.18: two of each thousand), so that arming and disarming takes one change of the kernel's text and one wait,
 * however many sites there are. A hit finds its sites by their address in a hash table.
 *
 * One ops asks for all registers; the other asks only for those that hold arguments, which costs
 * a third as much. If one site of a function needs all registers, the first ops serves all sites
 * of that function: with two ops at one function ftrace would call both through a list.
 */
#include <linux/ftrace.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "arming.h"
#include "attach.h"
#include "entry.h"
#include "features.h"
#include "module_notifier.h"
#include "run.h"

#if defined(CONFIG_X86_64) && defined(CONFIG_DYNAMIC_FTRACE_WITH_REGS) && \
	defined(CONFIG_KPROBES_ON_FTRACE)

/*
 * Written under spile_session.lock, read by hits. A slot in use has an address, and
 * keeps it while all of its sites are turned off. A released slot has
 * SLOT_WAS_USED, so that searches continue past it.
 */
struct slot {
	unsigned long address;		/* as ftrace gives it; 0: never used */
	unsigned long alone;		/* the site, if there is only one, and enum alone */
	struct spile_site *first;	/* of the sites there, in the order of the script */
	bool whole;			/* served by an ops for all registers */
	bool pending;			/* added, not yet armed */
	bool serving;			/* in the filter of its bank */
	unsigned short bank;
} __aligned(32);
enum { SLOT_WAS_USED = 1 };

/*
 * What a hit of a function with a single site does, in the lowest bits of slot.alone; 0:
 * spile_run_simple(), so that the pointer is the site's.
 */
enum alone {
	ALONE_ADDS = 1,			/* spile_run_addition() */
	ALONE_WHOLE = 2,		/* spile_run_whole() */
	ALONE_OTHER = 4,		/* spile_run_otherwise() */
	NOT_ALONE = ALONE_OTHER,	/* without an address: there is no single site */
};

static struct slot *slots;	/* a power of two, at least twice as many as sites */
static unsigned int slot_bits;
static unsigned int slot_shift;	/* 32 - slot_bits */

static inline struct slot *slot_at(unsigned long place)
{
	return &slots[place & ((1ul << slot_bits) - 1)];
}

/*
 * Multiplicative, as hash_32(), which would compute the shift each time. The upper halves
 * of addresses of code are all the same.
 */
static __always_inline unsigned long first_place(unsigned long address)
{
	return (u32)address * GOLDEN_RATIO_32 >> slot_shift;
}

static noinline struct slot *find_slot_behind(unsigned long address)
{
	unsigned long place = first_place(address), tries;
	struct slot *slot;

	for (tries = 1; tries < 1ul << slot_bits; tries++) {
		slot = slot_at(place + tries);
		/* Acquire: pairs with the release of the address in add_slot(). */
		if (likely(smp_load_acquire(&slot->address) == address))
			return slot;
		if (!slot->address)
			break;
	}
	return NULL;
}

static __always_inline struct slot *find_slot(unsigned long address)
{
	struct slot *slot = &slots[first_place(address)];

	/* Acquire: pairs with the release of the address in add_slot(). */
	if (likely(smp_load_acquire(&slot->address) == address))
		return slot;
	return find_slot_behind(address);
}

static noinline void handle_all(struct slot *slot, unsigned long *regs)
{
	struct spile_site *site;

	/*
	 * The loads of the sites depend on these; pairs with the release in
	 * spile_entry_add().
	 */
	for (site = READ_ONCE(slot->first); site; site = READ_ONCE(site->same))
		spile_run_site(site, regs);
}

/* Looks up an address that is not in its first slot. */
static noinline void handle_behind(unsigned long address, unsigned long *regs)
{
	struct slot *slot = find_slot_behind(address);

	if (likely(slot))
		handle_all(slot, regs);
}

/*
 * Interrupts may be on, and preemption. Nothing that is traced may be called before the
 * context is claimed (spile_run() counts later hits as nested).
 */
static __always_inline void handle(unsigned long address, unsigned long *regs)
{
	struct slot *slot = &slots[first_place(address)];
	unsigned long alone;

	/* Acquire: as in find_slot(). */
	if (unlikely(smp_load_acquire(&slot->address) != address)) {
		handle_behind(address, regs);
		return;
	}
	/* Ordered as the loads in handle_all(). */
	alone = READ_ONCE(slot->alone);
	if (!(alone & (ALONE_ADDS | ALONE_WHOLE | ALONE_OTHER)))
		spile_run_simple((struct spile_site *)alone, regs);
	else if (alone & ALONE_ADDS)
		spile_run_addition((struct spile_site *)(alone - ALONE_ADDS));
	else if (alone & ALONE_WHOLE)
		spile_run_whole((struct spile_site *)(alone - ALONE_WHOLE), regs);
	else if (alone != NOT_ALONE)
		spile_run_otherwise((struct spile_site *)(alone - ALONE_OTHER), regs);
	else
		handle_all(slot, regs);
}

static unsigned long alone_of(const struct spile_site *site)
{
	if (!site || site->same)
		return NOT_ALONE;
	switch (site->runs) {
	case SPILE_RUNS_SIMPLE:
		return (unsigned long)site;
	case SPILE_RUNS_ADDING:
		return (unsigned long)site + ALONE_ADDS;
	case SPILE_RUNS_WHOLE:
		return (unsigned long)site + ALONE_WHOLE;
	default:
		return (unsigned long)site + ALONE_OTHER;
	}
}

/* Updates slot.alone after a change of the slot's sites. */
static void set_alone(struct slot *slot)
{
	/* Release: as in spile_entry_add(). */
	smp_store_release(&slot->alone, alone_of(slot->first));
}

static void handle_arguments(unsigned long address, unsigned long parent, struct ftrace_ops *ops,
			     spile_ftrace_regs *regs)
{
	handle(address, (unsigned long *)spile_ftrace_words(regs));
}

static void handle_whole(unsigned long address, unsigned long parent, struct ftrace_ops *ops,
			 spile_ftrace_regs *regs)
{
	struct pt_regs *words = spile_ftrace_words(regs);
	unsigned long ip = words->ip;

	/* As after a breakpoint there: all kinds of kprobes show this value. */
	words->ip = address + 1;
	handle(address, (unsigned long *)words);
	words->ip = ip;
}

enum { ARGUMENTS, WHOLE, KINDS };

/* Permanent: kernel.ftrace_enabled cannot be switched off meanwhile, as with kprobes. */
#define ENTRY_FLAGS (FTRACE_OPS_FL_PERMANENT | SPILE_FTRACE_UNGUARDED)
static const struct ftrace_ops kinds[KINDS] = {
	[ARGUMENTS] = { .func = handle_arguments, .flags = ENTRY_FLAGS },
	[WHOLE] = { .func = handle_whole, .flags = ENTRY_FLAGS | FTRACE_OPS_FL_SAVE_REGS },
};

/*
 * An ops and its filter. The kernel copies a filter to change it. Where it takes one address at
 * a time, 16,000 in one filter are 128 million copies of an entry (5.10: minutes): there, each
 * bank has few. It waits for all tasks to remove a bank, so few is not very few.
 */
struct bank {
	struct ftrace_ops ops;
	unsigned int served;		/* addresses in the filter */
	bool registered;
};
enum { PER_BANK = SPILE_FTRACE_FILTERS_MANY ? INT_MAX : 1000 };
static struct bank *banks;		/* of the kinds in turn */
static unsigned int bank_count;

/*
 * Words of struct pt_regs that a function's entry has without FTRACE_OPS_FL_SAVE_REGS
 * (arch/x86/kernel/ftrace_64.S, save_mcount_regs and ftrace_caller).
 */
static bool arguments_suffice(const struct spile_site *site)
{
#ifdef CONFIG_DYNAMIC_FTRACE_WITH_ARGS
#define WORD(name) (1ull << offsetof(struct pt_regs, name) / sizeof(long))
	return !(site->probe->registers &
		 ~(WORD(di) | WORD(si) | WORD(dx) | WORD(cx) | WORD(r8) | WORD(r9) | WORD(sp)));
#undef WORD
#else
	return false;
#endif
}

/* Init code is freed after the module's init without a notification from ftrace. */
static bool is_init_code(const struct spile_site *site)
{
	struct module *module = site->place ? spile_modules_of(site->probe->target) : NULL;

	return module && within_module_init(site->place, module);
}

bool spile_entry_may_be(const struct spile_site *site)
{
	/* There is no notification when a module that is not a target is unloaded. */
	if (!slots || (site->probe->target < 0 && (!site->symbol || strchr(site->symbol, ':'))))
		return false;
	if (is_init_code(site))
		return false;
	/*
	 * Elsewhere the return hook takes locks, and only kprobes prevents recursion on them.
	 */
	return site->probe->kind != SPILE_PROBE_KRETPROBE ||
	       IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK);
}

/*
 * For functions whose addresses are known in advance. At an entry there is a call, or a nop
 * while nothing traces it. ftrace refuses other instructions that look the same
 * (spile_entry_commit()), because it only patches its own places. Registering a kprobe to find
 * out would search all jump labels of the kernel each
 * time: 1.6 million instructions for each probe (6.1).
 */
bool spile_entry_is_plain(struct spile_site *site)
{
	/*
	 * endbr64, and what the kernel writes over the ones that are not targets of indirect
	 * jumps, before and since 6.15.
	 */
	static const u8 landings[][4] = {
		{ 0xf3, 0x0f, 0x1e, 0xfa }, { 0x66, 0x0f, 0x1f, 0x00 }, { 0x0f, 0x1f, 0x40, 0xd6 },
	};
	/* Before 5.13 the second one on most CPUs (arch_init_ideal_nops()). */
	static const u8 nops[][5] = {
		{ 0x0f, 0x1f, 0x44, 0x00, 0x00 }, { 0x66, 0x66, 0x66, 0x66, 0x90 },
	};
	enum { CALL = 0xe8 };
	u8 code[sizeof(landings[0]) + sizeof(nops[0])], *at = code;
	unsigned int i;

	if (!site->kprobe.addr || !spile_entry_may_be(site))
		return false;
	if (copy_from_kernel_nofault(code, site->kprobe.addr, sizeof(code)))
		return false;
	for (i = 0; i < ARRAY_SIZE(landings) && at == code; i++)
		if (!memcmp(code, landings[i], sizeof(landings[i])))
			at += sizeof(landings[i]);
	if (*at != CALL && memcmp(at, nops[0], sizeof(nops[0])) &&
	    memcmp(at, nops[1], sizeof(nops[1])))
		return false;
	site->kprobe.addr = (kprobe_opcode_t *)((unsigned long)site->kprobe.addr + (at - code));
	return true;
}

static struct slot *add_slot(unsigned long address)
{
	struct slot *slot = find_slot(address);
	unsigned long place = first_place(address);

	if (slot && slot->first)
		return slot;
	if (slot) {
		/* All of its sites were turned off, so no ops serves it. */
		slot->whole = false;
		slot->pending = true;
		return slot;
	}
	/* There are more slots than sites: one is free. */
	for (slot = slot_at(place); slot->address > SLOT_WAS_USED; slot = slot_at(++place))
		;
	slot->first = NULL;
	slot->alone = NOT_ALONE;
	slot->whole = false;
	slot->pending = true;
	slot->serving = false;
	/* Release: the fields above before the address; pairs with the acquire in find_slot(). */
	smp_store_release(&slot->address, address);
	return slot;
}

bool spile_entry_add(struct spile_site *site)
{
	unsigned long address = (unsigned long)site->kprobe.addr;
	struct spile_site **last;
	struct slot *slot;

	slot = add_slot(address);
	/* Already armed by the ops that saves only arguments. */
	if (!slot->pending && !slot->whole && !arguments_suffice(site))
		return false;
	if (slot->pending && !arguments_suffice(site))
		slot->whole = true;
	site->same = NULL;
	site->by_entry = true;
	for (last = &slot->first; *last; last = &(*last)->same)
		;
	/* Release: the site's fields before the pointer; pairs with the loads in handle(). */
	smp_store_release(last, site);
	set_alone(slot);
	return true;
}

/* There is one: all banks of a kind have room for all sites. */
static unsigned int bank_with_room(int kind)
{
	unsigned int number = kind;

	while (banks[number].served == PER_BANK && number + KINDS < bank_count)
		number += KINDS;
	return number;
}

static bool serve(struct slot *slot)
{
	unsigned int number = bank_with_room(slot->whole);
	struct bank *bank = &banks[number];

	if (ftrace_set_filter_ip(&bank->ops, slot->address, 0, 0))
		return false;
	bank->served++;
	slot->bank = number;
	slot->serving = true;
	return true;
}

/* Clears the filter. ftrace_free_filter() would leave pointers to freed memory. */
static void forget_filter(struct bank *bank)
{
	WARN_ON_ONCE(ftrace_set_filter(&bank->ops, NULL, 0, 1));
	bank->served = 0;
}

static void remove_bank(struct bank *bank)
{
	if (bank->registered)
		WARN_ON_ONCE(unregister_ftrace_function(&bank->ops));
	bank->registered = false;
	if (bank->served)
		forget_filter(bank);
}

/* Registers an ops that has a filter; without one it would be called for every function. */
static int register_bank(unsigned int number)
{
	struct bank *bank = &banks[number];
	unsigned int place;
	int error;

	if (bank->registered || !bank->served)
		return 0;
	error = register_ftrace_function(&bank->ops);
	bank->registered = !error;
	if (!error)
		return 0;
	forget_filter(bank);
	for (place = 0; place < 1u << slot_bits; place++)
		if (slots[place].serving && slots[place].bank == number) {
			slots[place].pending = true;
			slots[place].serving = false;
		}
	return error;
}

static int register_banks(int kind)
{
	unsigned int number;
	int error = 0;

	for (number = kind; number < bank_count && spile_arming_goes_on(); number += KINDS)
		error = register_bank(number) ?: error;
	return error;
}

/* Never registered: ftrace serves the addresses that its filter accepts. */
static struct ftrace_ops sieve = { .func = handle_arguments, .flags = SPILE_FTRACE_UNGUARDED };

enum {
	SIFTED_AT_ONCE = 64,
};

/*
 * Moves the addresses that ftrace serves to the front and returns their number. One unknown
 * address makes ftrace refuse a whole filter, so the list is split in halves until that address
 * is found. `sieve` has a filter of its own, which is short: each change copies all of it.
 */
static unsigned int sift(unsigned long *addresses, unsigned int count)
{
	unsigned int half = count / 2, first, second;

	if (!spile_ftrace_set_filter_only(&sieve, addresses, count))
		return count;
	if (count == 1)
		return 0;
	first = sift(addresses, half);	/* as deep as the number has bits */
	second = sift(addresses + half, count - half);
	memmove(addresses + first, addresses + half, second * sizeof(*addresses));
	return first + second;
}

static unsigned int sift_all(unsigned long *addresses, unsigned int count)
{
	unsigned int kept = 0, at, some;

	for (at = 0; at < count && spile_arming_goes_on(); at += some) {
		unsigned int good;

		some = min_t(unsigned int, count - at, SIFTED_AT_ONCE);
		good = sift(addresses + at, some);
		memmove(addresses + kept, addresses + at, good * sizeof(*addresses));
		kept += good;
	}
	WARN_ON_ONCE(ftrace_set_filter(&sieve, NULL, 0, 1));
	return kept;
}

/*
 * Adds the addresses to the only bank of its kind, in steps, between which other tasks run and
 * arming may be cancelled.
 */
static int serve_many(int kind, unsigned long *addresses, unsigned int count)
{
	struct spile_steps steps = SPILE_ENTRY_STEPS;
	unsigned int at, some, i;
	int error = 0;

	for (at = 0; at < count && !error && spile_arming_goes_on(); at += some) {
		some = spile_step_begins(&steps, count - at);
		error = spile_ftrace_set_filter_ips(&banks[kind].ops, addresses + at, some, false);
		if (error)
			break;
		for (i = at; i < at + some; i++) {
			struct slot *slot = find_slot(addresses[i]);

			slot->pending = false;
			slot->serving = true;
			slot->bank = kind;
		}
		banks[kind].served += some;
		error = register_bank(kind);
		spile_step_ends(&steps, some);
	}
	return error;
}

static int serve_all(int kind)
{
	unsigned long *addresses = NULL;
	unsigned int place, count = 0;
	int error = 0;

	if (SPILE_FTRACE_FILTERS_MANY)
		addresses = kvmalloc_array(1u << slot_bits, sizeof(*addresses), GFP_KERNEL);
	for (place = 0; place < 1u << slot_bits; place++) {
		struct slot *slot = &slots[place];

		if (!slot->pending || slot->whole != kind)
			continue;
		if (addresses)
			addresses[count++] = slot->address;
		else if (!spile_arming_goes_on())
			break;
		else if (serve(slot))
			slot->pending = false;
	}
	if (count)
		error = serve_many(kind, addresses, sift_all(addresses, count));
	kvfree(addresses);
	return error ?: register_banks(kind);
}

int spile_entry_commit(void)
{
	unsigned int place;
	int kind, error, result = 0;

	if (!slots)
		return 0;
	for (kind = 0; kind < KINDS; kind++) {
		error = serve_all(kind);
		result = error ?: result;
	}
	for (place = 0; place < 1u << slot_bits; place++)
		if (slots[place].pending && !result)
			result = -EINVAL;
	return result;
}

static void leave_slot(struct slot *slot)
{
	slot->pending = false;
	slot->serving = false;
	WRITE_ONCE(slot->alone, NOT_ALONE);
	WRITE_ONCE(slot->first, NULL);
	WRITE_ONCE(slot->address, SLOT_WAS_USED);
}

bool spile_entry_refused(const struct spile_site *site)
{
	struct slot *slot =
		site->by_entry && !site->off ? find_slot((unsigned long)site->kprobe.addr) : NULL;

	return slot && slot->pending;
}

bool spile_entry_is_whole(const struct spile_site *site)
{
	struct slot *slot = find_slot((unsigned long)site->kprobe.addr);

	return slot && slot->whole;
}

void spile_entry_forget_refused(void)
{
	unsigned int place;

	for (place = 0; place < 1u << slot_bits; place++)
		if (slots[place].pending)
			leave_slot(&slots[place]);
}

/*
 * The kernel copies the filter to change it. If the loader is killed because memory is short,
 * that may fail: then the addresses stay until the ops goes, and their hits are turned away.
 */
static void check_removed(int error)
{
	WARN_ON_ONCE(error && error != -ENOMEM);
}

/* The last address stays in the filter, because an empty filter means all functions. */
static void stop_serving(struct slot *slot)
{
	struct bank *bank = &banks[slot->bank];

	if (!slot->serving)
		return;
	slot->serving = false;
	if (bank->served > 1) {
		bank->served--;
		check_removed(ftrace_set_filter_ip(&bank->ops, slot->address, 1, 0));
	} else {
		remove_bank(bank);
	}
}

void spile_entry_drop(struct spile_site *site)
{
	struct slot *slot = find_slot((unsigned long)site->kprobe.addr);
	struct spile_site **last;

	if (WARN_ON_ONCE(!slot))
		return;
	/* A concurrent hit at this site still follows its `same` to the next one. */
	for (last = &slot->first; *last; last = &(*last)->same) {
		if (*last == site) {
			WRITE_ONCE(*last, site->same);
			break;
		}
	}
	set_alone(slot);
	if (slot->first)
		return;
	slot->pending = false;
	stop_serving(slot);
}

static struct slot *slot_of(const struct spile_site *site)
{
	return site->by_entry ? find_slot((unsigned long)site->kprobe.addr) : NULL;
}

/*
 * As stop_serving() for the slot of each site that the ops serves, by one change of the filter
 * if the kernel supports it.
 */
static void stop_serving_many(int kind, struct spile_site *const *sites, unsigned int count)
{
	unsigned long *addresses = NULL;
	struct bank *bank = &banks[kind];
	unsigned int gone = 0, i;

	if (SPILE_FTRACE_FILTERS_MANY)
		addresses = kvmalloc_array(count, sizeof(*addresses), GFP_KERNEL);
	for (i = 0; i < count; i++) {
		struct slot *slot = slot_of(sites[i]);

		if (!slot || !slot->serving || slot->whole != kind)
			continue;
		if (!addresses) {
			stop_serving(slot);
			continue;
		}
		slot->serving = false;
		addresses[gone++] = slot->address;
	}
	if (gone == bank->served) {
		remove_bank(bank);
	} else if (gone) {
		bank->served -= gone;
		check_removed(spile_ftrace_set_filter_ips(&bank->ops, addresses, gone, true));
	}
	kvfree(addresses);
}

unsigned int spile_entry_served(void)
{
	unsigned int number, served = 0;

	for (number = 0; number < bank_count; number++)
		served += banks[number].served;
	return served;
}

/* Removes the last bank that serves any address. */
static unsigned int remove_last_bank(struct spile_steps *steps)
{
	unsigned int number = bank_count, place, count;

	while (number && !banks[number - 1].served)
		number--;
	if (!number--)
		return 0;
	count = banks[number].served;
	spile_step_begins(steps, count);
	remove_bank(&banks[number]);
	for (place = 0; place < 1u << slot_bits; place++)
		if (slots[place].bank == number)
			slots[place].serving = false;
	spile_step_ends(steps, count);
	return count;
}

/*
 * The slots keep their sites, for hits that are turned away. The last addresses stay, as
 * in stop_serving().
 */
bool spile_entry_remove_some(struct spile_steps *steps)
{
	unsigned int place, kind, most, count = 0;
	unsigned long *addresses;

	if (spile_entry_served() <= KINDS)
		return false;
	if (!SPILE_FTRACE_FILTERS_MANY)
		return remove_last_bank(steps);
	kind = banks[WHOLE].served > banks[ARGUMENTS].served ? WHOLE : ARGUMENTS;
	most = spile_step_begins(steps, banks[kind].served - 1);
	addresses = kvmalloc_array(most, sizeof(*addresses), GFP_KERNEL);
	if (!addresses)
		return false;
	for (place = 0; place < 1u << slot_bits && count < most; place++) {
		struct slot *slot = &slots[place];

		if (!slot->serving || slot->whole != kind)
			continue;
		slot->serving = false;
		addresses[count++] = slot->address;
	}
	banks[kind].served -= count;
	if (count)
		check_removed(
			spile_ftrace_set_filter_ips(&banks[kind].ops, addresses, count, true));
	kvfree(addresses);
	spile_step_ends(steps, count);
	return count;
}

/*
 * At the end of the session the first call removes all addresses: hits are ignored by then.
 * Before that, sites go with their module. All sites of an address have the same target, so
 * they go together. A module that is being unloaded runs no code any more, so no hit is in
 * progress when its addresses leave a filter that stays. Otherwise the ops is unregistered,
 * and ftrace waits for its callers.
 */
void spile_entry_remove(struct spile_site *const *sites, unsigned int count)
{
	unsigned int place, i;
	int kind;

	if (!slots)
		return;
	if (READ_ONCE(spile_session_state) == SPILE_STATE_RUNNING) {
		for (kind = 0; kind < KINDS; kind++)
			stop_serving_many(kind, sites, count);
		for (i = 0; i < count; i++) {
			struct slot *slot = slot_of(sites[i]);

			if (slot)
				leave_slot(slot);
		}
		return;
	}
	for (i = 0; i < bank_count; i++)
		remove_bank(&banks[i]);
	for (place = 0; place < 1u << slot_bits; place++)
		if (slots[place].address)
			leave_slot(&slots[place]);
}

int spile_entry_init(void)
{
	unsigned int number;
	size_t bytes;

	slot_bits = ilog2(roundup_pow_of_two(max(spile_script.probe_count, 1u))) + 1;
	slot_shift = 32 - slot_bits;
	bytes = sizeof(*slots) << slot_bits;
	slots = kvzalloc(bytes, GFP_KERNEL);
	bank_count = KINDS * DIV_ROUND_UP(max(spile_script.probe_count, 1u), PER_BANK);
	banks = kcalloc(bank_count, sizeof(*banks), GFP_KERNEL);
	if (!slots || !banks) {
		spile_entry_exit();
		return -ENOMEM;
	}
	for (number = 0; number < bank_count; number++)
		banks[number].ops = kinds[number % KINDS];
	spile_session_charge(bytes + bank_count * sizeof(*banks));
	return 0;
}

void spile_entry_exit(void)
{
	kvfree(slots);
	slots = NULL;
	kfree(banks);
	banks = NULL;
	bank_count = 0;
}

#else

void spile_entry_drop(struct spile_site *site) { }
bool spile_entry_may_be(const struct spile_site *site) { return false; }
bool spile_entry_is_plain(struct spile_site *site) { return false; }
bool spile_entry_add(struct spile_site *site) { return false; }
int spile_entry_commit(void) { return 0; }
bool spile_entry_refused(const struct spile_site *site) { return false; }
void spile_entry_forget_refused(void) { }
unsigned int spile_entry_served(void) { return 0; }
bool spile_entry_remove_some(struct spile_steps *steps) { return false; }
bool spile_entry_is_whole(const struct spile_site *site) { return false; }
void spile_entry_remove(struct spile_site *const *sites, unsigned int count) { }
int spile_entry_init(void) { return 0; }
void spile_entry_exit(void) { }

#endif
