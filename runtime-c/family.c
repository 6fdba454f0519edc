// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of probe families.
 */
#include <linux/kernel.h>

#include "family.h"

/*
 * A family that is only referenced here is left out of a module, and its entry is null
 * (kbuild/src/prune).
 */
#define SPILE_FAMILY_ENTRY(name) &spile_##name##_family,
const struct spile_family *const spile_families[SPILE_FAMILY_COUNT]
	__section(".rodata.spile_families") = {
	SPILE_FAMILIES(SPILE_FAMILY_ENTRY)
};
#undef SPILE_FAMILY_ENTRY

const struct spile_family *spile_family_of(enum spile_probe_kind kind)
{
	unsigned int i;

	for (i = 0; i < SPILE_FAMILY_COUNT; i++)
		if (spile_families[i] && spile_families[i]->kind == kind)
			return spile_families[i];
	return NULL;
}

void spile_families_commit(void)
{
	unsigned int i;

	for (i = 0; i < SPILE_FAMILY_COUNT; i++)
		if (spile_families[i] && spile_families[i]->commit)
			spile_families[i]->commit();
}

/* The first `count` families of the table, in reverse. */
static void exit_families(unsigned int count)
{
	while (count--)
		if (spile_families[count] && spile_families[count]->exit)
			spile_families[count]->exit();
}

int spile_families_init(void)
{
	unsigned int i;
	int error;

	for (i = 0; i < SPILE_FAMILY_COUNT; i++) {
		if (!spile_families[i] || !spile_families[i]->init)
			continue;
		error = spile_families[i]->init();
		if (error) {
			exit_families(i);
			return error;
		}
	}
	return 0;
}

void spile_families_exit(void)
{
	exit_families(SPILE_FAMILY_COUNT);
}
