/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_MODULE_SYMBOLS_H
#define SPILE_MODULE_SYMBOLS_H

struct module;

/* Sets the addresses of the target's symbols when `module` is loaded; under spile_session.lock. */
void spile_module_symbols_find(unsigned int target, struct module *module);
/* Address of a symbol of a module; 0 if the kernel has none of that name. */
unsigned long spile_module_symbol_address(struct module *module, const char *name);
/* Calls see() for each symbol with its address; see() must not sleep. */
void spile_module_symbols_each(struct module *module,
			       void (*see)(const char *name, unsigned long address));
/* Clears the addresses: the target is being unloaded. */
void spile_module_symbols_forget(unsigned int target);

#endif
