// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Addresses of variables of loaded modules.
 *
 * A module's sections are placed when it is loaded, and the kernel exports no way to ask for
 * them; but it keeps the module's symbols with their addresses (struct mod_kallsyms), those of
 * data with CONFIG_KALLSYMS_ALL. The address of a per-CPU symbol is not that of a copy: reads
 * add the offset of a CPU.
 */
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "module_symbols.h"
#include "script.h"
#include "session.h"

bool spile_module_symbol_is_mark(const char *name)
{
	return (name[0] == '.' && name[1] == 'L') || (name[0] == 'L' && name[1] == '0') ||
	       (name[0] == '$' && name[1] && strchr("axdt", name[1]) &&
		(!name[2] || name[2] == '.'));
}

#ifdef CONFIG_KALLSYMS
/* Undefined symbols have no section. */
void spile_module_symbols_each(struct module *module,
			       void (*see)(const char *name, unsigned long address))
{
	const struct mod_kallsyms *kallsyms;
	unsigned int i;

	rcu_read_lock();
	kallsyms = rcu_dereference_raw(module->kallsyms);
	for (i = 0; kallsyms && i < kallsyms->num_symtab; i++) {
		const Elf_Sym *symbol = &kallsyms->symtab[i];

		if (symbol->st_shndx != SHN_UNDEF)
			see(kallsyms->strtab + symbol->st_name, symbol->st_value);
	}
	rcu_read_unlock();
}

/* The first symbol of the name, as kprobes take it. */
unsigned long spile_module_symbol_address(struct module *module, const char *name)
{
	const struct mod_kallsyms *kallsyms;
	unsigned long address = 0;
	unsigned int i;

	/* The table of a module that is coming is freed after its init and a grace period.
	 */
	rcu_read_lock();
	kallsyms = rcu_dereference_raw(module->kallsyms);
	for (i = 0; kallsyms && i < kallsyms->num_symtab; i++) {
		const Elf_Sym *symbol = &kallsyms->symtab[i];

		if (symbol->st_shndx != SHN_UNDEF &&
		    !strcmp(kallsyms->strtab + symbol->st_name, name)) {
			address = symbol->st_value;
			break;
		}
	}
	rcu_read_unlock();
	return address;
}

/* As kernel/module/kallsyms.c, find_kallsyms_symbol(), looks for the end of a function. */
unsigned long spile_module_symbols_last(const struct module *module, unsigned long place,
					unsigned long end)
{
	const struct mod_kallsyms *kallsyms;
	unsigned long last = place;
	unsigned int i;

	rcu_read_lock();
	kallsyms = rcu_dereference_raw(module->kallsyms);
	for (i = 0; kallsyms && i < kallsyms->num_symtab; i++) {
		const Elf_Sym *symbol = &kallsyms->symtab[i];
		const char *name = kallsyms->strtab + symbol->st_name;

		if (symbol->st_shndx == SHN_UNDEF || !*name || symbol->st_value >= end ||
		    spile_module_symbol_is_mark(name))
			continue;
		if (symbol->st_value > place) {
			last = 0;
			break;
		}
		last = max_t(unsigned long, last, symbol->st_value + symbol->st_size);
	}
	rcu_read_unlock();
	return min(last, end);
}
#else
void spile_module_symbols_each(struct module *module,
			       void (*see)(const char *name, unsigned long address))
{
}

unsigned long spile_module_symbol_address(struct module *module, const char *name)
{
	return 0;
}

/* The kernel knows no end of a function, and does not decode it. */
unsigned long spile_module_symbols_last(const struct module *module, unsigned long place,
					unsigned long end)
{
	return 0;
}
#endif

void spile_module_symbols_find(unsigned int target, struct module *module)
{
	unsigned int i;

	for (i = 0; i < spile_script.module_symbol_count; i++) {
		struct spile_module_symbol *symbol = &spile_script.module_symbols[i];

		if (symbol->target != (int)target)
			continue;
		WRITE_ONCE(symbol->address, spile_module_symbol_address(module, symbol->name));
		if (!symbol->address)
			spile_session_emit(
				SPILE_RECORD_WARN,
				"module \"%s\": the kernel keeps no address of \"%s\" (CONFIG_KALLSYMS_ALL): variables cannot be read",
				spile_script.targets[target].name, symbol->name);
	}
}

void spile_module_symbols_forget(unsigned int target)
{
	unsigned int i;

	for (i = 0; i < spile_script.module_symbol_count; i++)
		if (spile_script.module_symbols[i].target == (int)target)
			WRITE_ONCE(spile_script.module_symbols[i].address, 0);
}
