/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_MODULE_SYMBOLS_H
#define SPILE_MODULE_SYMBOLS_H

#include <linux/types.h>

struct module;

/* Sets the addresses of the target's symbols when `module` is loaded; under spile_session.lock. */
void spile_module_symbols_find(unsigned int target, struct module *module);
/* Address of a symbol of a module; 0 if the kernel has none of that name. */
unsigned long spile_module_symbol_address(struct module *module, const char *name);
/* Calls see() for each symbol with its address; see() must not sleep. */
void spile_module_symbols_each(struct module *module,
			       void (*see)(const char *name, unsigned long address));
/* Mapping symbols of assemblers (include/linux/module_symbol.h, is_mapping_symbol()). */
bool spile_module_symbol_is_mark(const char *name);
/*
 * Where the function around a place ends, if no symbol of the module's code, which ends at `end`,
 * follows it; otherwise 0. From the sizes of the symbols: at most `end`, at least the place.
 */
unsigned long spile_module_symbols_last(const struct module *module, unsigned long place,
					unsigned long end);
/* Clears the addresses: the target is being unloaded. */
void spile_module_symbols_forget(unsigned int target);

#endif
