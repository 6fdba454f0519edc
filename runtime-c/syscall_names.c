// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers in system calls' arguments as text: tables here instead of code in
 * every script.
 */
#include <linux/kernel.h>
#include <linux/types.h>

#include "script.h"
#include "builtins.h"

/* An entry without a name ends a kind; its mask is 0, or 1 + the number of the next kind. */
struct syscall_name {
	u32 mask, value;
	const char *name;
};

enum {
#define SPILE_NAMES(kind) KIND_##kind,
#define SPILE_NAME(mask, value, name)
#define SPILE_NAMES_ELSE(kind)
#define SPILE_NAMES_END
#include "syscall_names.h"
#undef SPILE_NAMES
#undef SPILE_NAME
#undef SPILE_NAMES_ELSE
#undef SPILE_NAMES_END
};

#define SPILE_NAMES(kind) static const struct syscall_name names_##kind[] = {
#define SPILE_NAME(mask, value, name) { mask, value, #name },
#define SPILE_NAMES_ELSE(kind) { KIND_##kind + 1, 0, NULL } };
#define SPILE_NAMES_END { 0, 0, NULL } };
#include "syscall_names.h"
#undef SPILE_NAMES
#undef SPILE_NAME
#undef SPILE_NAMES_ELSE
#undef SPILE_NAMES_END

static const struct syscall_name *const syscall_kinds[] = {
#define SPILE_NAMES(kind) names_##kind,
#define SPILE_NAME(mask, value, name)
#define SPILE_NAMES_ELSE(kind)
#define SPILE_NAMES_END
#include "syscall_names.h"
#undef SPILE_NAMES
#undef SPILE_NAME
#undef SPILE_NAMES_ELSE
#undef SPILE_NAMES_END
};

/*
 * The names joined by |; bits without a name in hexadecimal. Bounded: entries of two kinds.
 */
unsigned int spile_fn___syscall_named(struct spile_context *c, spile_long kind, spile_long number,
				      char *out)
{
	const struct syscall_name *name;
	u64 value = number, rest = value;
	unsigned int length = 0;

	out[0] = 0;
	if (kind < 0 || kind >= ARRAY_SIZE(syscall_kinds))
		return 0;
	for (name = syscall_kinds[kind];; name++) {
		if (!name->name && name->mask && !length)
			name = syscall_kinds[name->mask - 1];
		if (!name->name)
			break;
		/* Names of value 0 are compared with all bits. */
		if (((name->value ? rest : value) & name->mask) != name->value)
			continue;
		rest &= ~(u64)name->mask;
		length += scnprintf(out + length, spile_script.string_bytes - length, "%s%s",
				    length ? "|" : "", name->name);
	}
	if (rest || !length)
		length += scnprintf(out + length, spile_script.string_bytes - length, "%s%#llx",
				    length ? "|" : "", rest);
	return length;
}
