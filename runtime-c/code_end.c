// SPDX-License-Identifier: GPL-2.0-or-later
/* Kprobes in the last function of a module's code, for which some kernels read past its end. */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/types.h>

#include "code_end.h"
#include "features.h"
#include "module_notifier.h"
#include "module_symbols.h"
#include "session.h"
#include "site.h"

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
 * follows: if they are odd in number, the last one lies across the end, and the kernel faults.
 * It stops at the int3 with which newer kernels fill that memory. Of anything else that is there
 * it is not known how it is decoded.
 */
static bool decodes_past(unsigned long from, unsigned long end)
{
	enum { INT3 = 0xcc };
	const u8 *rest = (const u8 *)from;
	unsigned long bytes = end - from;

	if (!bytes || *rest == INT3)
		return false;
	return bytes % 2 || memchr_inv(rest, 0, bytes);
}

bool spile_code_end_is_passed(const struct spile_site *site)
{
	const struct module *module;
	bool of_init;

	if (site->probe->target < 0 || !site->place)
		return false;
	module = spile_modules_of(site->probe->target);
	for (of_init = false; module; of_init = true) {
		unsigned long bytes, start = spile_module_code(module, of_init, &bytes);

		if (site->place - start < bytes) {
			unsigned long end = start + bytes;
			unsigned long last = spile_module_symbols_last(module, site->place, end);

			return last && !is_traced(module, site->place) && decodes_past(last, end);
		}
		if (of_init)
			break;
	}
	return false;
}
#else
bool spile_code_end_is_passed(const struct spile_site *site)
{
	return false;
}
#endif

int spile_code_end_check(const struct spile_site *site)
{
	if (!spile_code_end_is_passed(site))
		return 0;
	spile_session_emit(
		SPILE_RECORD_WARN,
		"probe %s: it is in the last function of the module's code, and the kernel would read past that code's end: a kprobe could crash it",
		site->probe->point);
	return -EILSEQ;
}
