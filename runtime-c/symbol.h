/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the kernel's addresses, from its own symbols (kallsyms).
 */
#ifndef SPILE_SYMBOL_H
#define SPILE_SYMBOL_H

#include "abi/abi.h"

/*
 * Writes "NAME+OFFSET/SIZE [MODULE]", with [kernel] for the kernel itself, without the size if
 * it is not known (data of modules); "0xADDRESS" if there is no name. `text` has
 * SPILE_SYMBOL_TEXT bytes. Any context. False if the address has no name or is not code.
 */
bool spile_symbol_text(char *text, unsigned long address);

/*
 * Answers SPILE_SYMBOL. Process context, without locks of the session: handlers, begin and
 * end probes may run meanwhile. -EINVAL for an invalid flag.
 */
int spile_symbol_find(struct spile_symbol *symbol);

#endif
