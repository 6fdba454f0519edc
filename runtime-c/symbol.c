// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of the kernel's addresses. Handlers ask where a script needs the text; what
 * is only printed goes into records as addresses, and the loader asks here, later:
 * a look into kallsyms takes thousands of instructions, and in a module a walk over
 * all its symbols. The modules of that time are past_code.c's.
 */
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "lines.h"
#include "past_code.h"
#include "symbol.h"

void spile_symbol_text(char *text, unsigned long address)
{
	BUILD_BUG_ON(KSYM_SYMBOL_LEN + sizeof(" [kernel]") > SPILE_SYMBOL_TEXT);
	sprint_symbol(text, address);
	if (!strstarts(text, "0x") && !strchr(text, '['))
		strlcat(text, " [kernel]", SPILE_SYMBOL_TEXT);
}

static bool is_of_the_kernel(const char *text)
{
	const char *open = strchr(text, '[');

	return open && !strcmp(open, "[kernel]");
}

/*
 * Code that is loaded without a module: BPF programs and trampolines. Or it has no name
 * yet.
 */
static bool is_fleeting(const char *text)
{
	return strstarts(text, "0x") || strstr(text, "[bpf]") || strstr(text, "[__builtin__");
}

/*
 * The state at that time. Before the time up to which entries were dropped, it is not
 * known what else was there.
 */
static void name_at(struct spile_symbol *symbol, unsigned long address, char *text)
{
	bool known;

	spile_past_code_lock();
	known = symbol->time > spile_past_code_forgotten();
	if (!known || !spile_past_code_text(text, address, symbol->time, &symbol->until)) {
		spile_symbol_text(text, address);
		if (!known && !is_of_the_kernel(text))
			scnprintf(text, SPILE_SYMBOL_TEXT, "0x%lx", address);
		symbol->until = is_fleeting(text) ? symbol->time : U64_MAX;
	}
	spile_past_code_unlock();
}

static void name_source(struct spile_symbol *symbol, unsigned long address, char *text)
{
	struct spile_line line;

	if (!spile_line_in_kernel(address, &line)) {
		name_at(symbol, address, text);
		if (!spile_line_in_module(text, &line))
			return;
	}
	scnprintf((char *)symbol->line, sizeof(symbol->line), "%s:%u", line.file, line.line);
}

int spile_symbol_find(struct spile_symbol *symbol)
{
	unsigned long address = symbol->address;
	char *text;

	if (symbol->flags & ~(SPILE_SYMBOL_LINE | SPILE_SYMBOL_RETURNS))
		return -EINVAL;
	memset(symbol->text, 0, sizeof(symbol->text));
	memset(symbol->line, 0, sizeof(symbol->line));
	name_at(symbol, address, (char *)symbol->text);
	symbol->stays = is_of_the_kernel((char *)symbol->text);
	if (!(symbol->flags & SPILE_SYMBOL_LINE))
		return 0;
	text = kmalloc(SPILE_SYMBOL_TEXT, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	/* A return address is after the call: its line is that of the byte before it. */
	name_source(symbol, address - !!(symbol->flags & SPILE_SYMBOL_RETURNS), text);
	kfree(text);
	return 0;
}
