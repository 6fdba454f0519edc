// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of the kernel's addresses. Handlers call this if a script needs the text as a value.
 * Names that are only printed are addresses in records, which the loader looks up here later: a
 * look-up in kallsyms takes thousands of instructions, and in a module a walk over all its
 * symbols. past_code.c has the modules that were loaded at the time.
 */
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "lines.h"
#include "past_code.h"
#include "symbol.h"

/*
 * find_kallsyms_symbol() (kernel/module/kallsyms.c) ends the last symbol of a module at the end
 * of its text. For data, which is after the text, this gives a negative size, printed as a
 * number near 2^64. Drops such a size, and returns whether there was one.
 */
static bool drop_wrong_size(char *text)
{
	char *size = strrchr(text, '/'), *end;

	if (!size || !strstarts(size, "/0x"))
		return false;
	end = size + 3 + strspn(size + 3, "0123456789abcdef");
	if (end - size <= 3 + 8)
		return false;
	memmove(size, end, strlen(end) + 1);
	return true;
}

bool spile_symbol_text(char *text, unsigned long address)
{
	bool is_code;

	BUILD_BUG_ON(KSYM_SYMBOL_LEN + sizeof(" [kernel]") > SPILE_SYMBOL_TEXT);
	sprint_symbol(text, address);
	is_code = !strstarts(text, "0x") && !drop_wrong_size(text);
	if (!strstarts(text, "0x") && !strchr(text, '['))
		strlcat(text, " [kernel]", SPILE_SYMBOL_TEXT);
	return is_code;
}

static bool is_of_the_kernel(const char *text)
{
	const char *open = strchr(text, '[');

	return open && !strcmp(open, "[kernel]");
}

/* Code that is loaded without a module (BPF programs and trampolines), or without a name yet. */
static bool is_fleeting(const char *text)
{
	return strstarts(text, "0x") || strstr(text, "[bpf]") || strstr(text, "[__builtin__");
}

/*
 * Names the address as of that time. For times before which entries were dropped, other code may
 * have been there.
 */
static void name_at(struct spile_symbol *symbol, unsigned long address, char *text)
{
	bool known, is_code;

	spile_past_code_lock();
	known = symbol->time > spile_past_code_forgotten();
	if (!known || !spile_past_code_text(text, address, symbol->time, &symbol->until)) {
		is_code = spile_symbol_text(text, address);
		if (!known && !is_of_the_kernel(text))
			scnprintf(text, SPILE_SYMBOL_TEXT, "0x%lx", address);
		symbol->until = is_fleeting(text) ? symbol->time : U64_MAX;
		/* A stack that the script has stored may be older than the record. */
		if (known && !is_code && spile_past_code_latest(text, address))
			symbol->until = symbol->time;
	}
	if (symbol->flags & SPILE_SYMBOL_STORED && spile_past_code_differs(text, address)) {
		scnprintf(text, SPILE_SYMBOL_TEXT, "0x%lx", address);
		symbol->until = symbol->time;
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

	if (symbol->flags & ~(SPILE_SYMBOL_LINE | SPILE_SYMBOL_RETURNS | SPILE_SYMBOL_STORED))
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
	/* A return address is after the call, so the line is that of the byte before it. */
	name_source(symbol, address - !!(symbol->flags & SPILE_SYMBOL_RETURNS), text);
	kfree(text);
	return 0;
}
