/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_MODULE_SYMBOLS_H
#define SPILE_MODULE_SYMBOLS_H

struct module;

/*
 * Sets the addresses of the target's symbols, now that `module` is there; under spile_session.lock.
 */
void spile_module_symbols_find(unsigned int target, struct module *module);
/* Address of a symbol of a module; 0: the kernel keeps none of that name. */
unsigned long spile_module_symbol_address(struct module *module, const char *name);
/* All of them with their addresses; see() must not sleep. */
void spile_module_symbols_each(struct module *module,
			       void (*see)(const char *name, unsigned long address));
/* The target is going. */
void spile_module_symbols_forget(unsigned int target);

#endif
