// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Address resolution. Neither kallsyms nor /proc is needed: the kernel's slide is computed from
 * any exported symbol, and a module has its symbols in memory, or else kprobes resolve names in
 * it.
 */
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/string.h>

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

/* Sites by the names of their symbols, while spile_attach_find() looks for these. */
static struct spile_site **wanted;
static unsigned int wanted_count;

static int compare_symbols(const void *a, const void *b)
{
	const struct spile_site *one = *(struct spile_site *const *)a;
	const struct spile_site *two = *(struct spile_site *const *)b;

	return strcmp(one->probe->symbol, two->probe->symbol);
}

/* If several symbols have the name, the first one is taken, as kprobes do. */
static void place_those_at(const char *name, unsigned long address)
{
	unsigned int low = 0, high = wanted_count;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (strcmp(wanted[middle]->probe->symbol, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (;
	     low < wanted_count && !wanted[low]->place && !strcmp(wanted[low]->probe->symbol, name);
	     low++)
		wanted[low]->place = address + wanted[low]->probe->address;
}

void spile_attach_find(int target)
{
	struct module *module = target < 0 ? NULL : spile_modules_of(target);
	unsigned int i;

	wanted = (struct spile_site **)spile_sites_room;
	wanted_count = 0;
	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_site *site = &spile_sites[i];

		if (site->probe->target != target || !site->symbol)
			continue;
		site->place = 0;
		wanted[wanted_count++] = site;
	}
	if (!module || !wanted_count)
		return;
	sort(wanted, wanted_count, sizeof(*wanted), compare_symbols, NULL);
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
