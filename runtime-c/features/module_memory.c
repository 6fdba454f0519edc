// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/module.h>

void *probe_module_memory(struct module *module);
void *probe_module_memory(struct module *module)
{
	return module->mem[MOD_RODATA].base;
}
