// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values for globals, checked against what each can hold.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "script.h"
#include "setting.h"

static int set_text(struct spile_setting_text *place, const struct spile_set *set)
{
	if (set->bytes > sizeof(set->text))
		return -EINVAL;
	if (set->offset && set->offset != place->length)
		return -EINVAL;
	if ((u64)set->offset + set->bytes >= spile_script.string_bytes)
		return -E2BIG;
	/* Strings of scripts end at a NUL. */
	if (memchr(set->text, 0, set->bytes))
		return -EINVAL;
	memcpy(place->text + set->offset, set->text, set->bytes);
	place->length = set->offset + set->bytes;
	place->text[place->length] = 0;
	return 0;
}

bool spile_setting_in_commands(const struct spile_set *set)
{
	return set->setting < spile_script.setting_count &&
	       spile_script.settings[set->setting].in_commands;
}

int spile_setting_set(const struct spile_set *set)
{
	const struct spile_setting *setting;

	if (set->reserved || set->setting >= spile_script.setting_count)
		return -EINVAL;
	setting = &spile_script.settings[set->setting];
	if (setting->is_string)
		return set_text(setting->place, set);
	if (set->bytes || set->offset)
		return -EINVAL;
	*(spile_long *)setting->place = set->number;
	return 0;
}
