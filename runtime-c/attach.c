// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Address resolution. Neither kallsyms nor /proc is needed: the kernel's slide is computed from
 * any exported symbol, and a module has its symbols in memory, or else kprobes resolve names in
 * it.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/types.h>

#include "attach.h"
#include "module_notifier.h"
#include "module_symbols.h"

unsigned long spile_slide;

unsigned long spile_attach_slide(void)
{
	return (unsigned long)register_kprobe - spile_script.anchor_address;
}

unsigned long spile_per_cpu_offset(void)
{
	return per_cpu_offset(raw_smp_processor_id());
}

/*
 * Sites by the names of their symbols, while spile_attach_find() looks for these: in lists,
 * each of which begins with a number in `list_first`, 0 or a site's + 1, and goes on in `list_next`.
 */
static u32 *list_first, *list_next;
static unsigned int list_bits;

static unsigned int list_of(const char *name)
{
	u32 hash = 0;

	while (*name)
		hash = hash * 31 + (unsigned char)*name++;
	return hash_32(hash, list_bits);
}

/* If several symbols have the name, the first one is taken, as kprobes do. */
static void place_those_at(const char *name, unsigned long address)
{
	u32 number;

	for (number = list_first[list_of(name)]; number; number = list_next[number - 1]) {
		struct spile_site *site = &spile_sites[number - 1];

		if (!site->place && !strcmp(site->probe->symbol, name))
			site->place = address + site->probe->address;
	}
}

void spile_attach_find(int target)
{
	struct module *module = target < 0 ? NULL : spile_modules_of(target);
	bool found = false;
	unsigned int i;

	/* Two numbers for each site. */
	list_next = (u32 *)spile_sites_room;
	list_first = list_next + spile_script.probe_count;
	list_bits = ilog2(max(spile_script.probe_count, 2u));
	memset(list_first, 0, sizeof(*list_first) << list_bits);
	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_site *site = &spile_sites[i];
		unsigned int list;

		if (site->probe->target != target || !site->symbol)
			continue;
		site->place = 0;
		list = list_of(site->probe->symbol);
		list_next[i] = list_first[list];
		list_first[list] = i + 1;
		found = true;
	}
	if (module && found)
		spile_module_symbols_each(module, place_those_at);
}

void spile_attach_place(struct kprobe *kprobe, const struct spile_site *site)
{
	memset(kprobe, 0, sizeof(*kprobe));	/* left over from an earlier registration */
	if (site->place) {
		kprobe->addr = (kprobe_opcode_t *)site->place;
	} else if (site->symbol) {
		kprobe->symbol_name = site->symbol;
		kprobe->offset = site->probe->address;
	} else {
		kprobe->addr =
			(kprobe_opcode_t *)(site->probe->address +
					    (site->probe->target < 0 ? 0 : spile_attach_slide()));
	}
}
