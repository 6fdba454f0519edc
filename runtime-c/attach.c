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
#include <linux/uaccess.h>

#include "attach.h"
#include "features.h"
#include "module_notifier.h"
#include "module_symbols.h"
#include "session.h"

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

#ifdef SPILE_HAVE_MODULE_MEMORY
/* Whether ftrace has the place: kprobes there are its callbacks, and nothing is decoded. */
static bool is_traced(const struct module *module, unsigned long place)
{
	enum { ENDBR = 4 };
#ifdef CONFIG_DYNAMIC_FTRACE
	unsigned int i;

	for (i = 0; i < module->num_ftrace_callsites; i++)
		if (module->ftrace_callsites[i] == place ||
		    module->ftrace_callsites[i] == place + ENDBR)
			return true;
#endif
	return false;
}

/*
 * register_kprobe() decodes the function around a place (arch/x86/kernel/kprobes/opt.c,
 * can_optimize()), which to it ends at the next symbol, or where the module's memory for code
 * ends. The rest of the last page is zeros, instructions of two bytes, and since 6.4 no page
 * follows: if the last instruction lies across the end, the kernel faults. It stops at the
 * int3 with which newer kernels fill that memory.
 */
bool spile_attach_reads_past(const struct spile_site *site)
{
	enum { INT3 = 0xcc };
	const struct module *module;
	bool of_init;

	if (site->probe->target < 0 || !site->place)
		return false;
	module = spile_modules_of(site->probe->target);
	for (of_init = false; module; of_init = true) {
		unsigned long bytes, start = spile_module_code(module, of_init, &bytes);
		u8 last;

		if (site->place - start < bytes)
			return !spile_module_symbols_between(module, site->place, start + bytes) &&
			       !is_traced(module, site->place) &&
			       (copy_from_kernel_nofault(&last, (void *)(start + bytes - 1), 1) ||
				last != INT3);
		if (of_init)
			break;
	}
	return false;
}
#else
bool spile_attach_reads_past(const struct spile_site *site)
{
	return false;
}
#endif

int spile_attach_check(const struct spile_site *site)
{
	if (!spile_attach_reads_past(site))
		return 0;
	spile_session_emit(
		SPILE_RECORD_WARN,
		"probe %s: it is in the last function of the module's code, and the kernel would read past that code's end: a kprobe could crash it",
		site->probe->point);
	return -EILSEQ;
}
