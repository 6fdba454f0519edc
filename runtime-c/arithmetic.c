// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Division, the only arithmetic of the language that can fail.
 */
#include "script.h"

spile_long spile_divide(struct spile_context *c, spile_long a, spile_long b)
{
	if (spile_unlikely(!b)) {
		spile_fail(c, SPILE_E_DIVISION, 0);
		return 0;
	}
	/* MIN / -1 traps in hardware; the language wraps. */
	if (spile_unlikely(b == -1))
		return spile_negate(a);
	return a / b;
}

spile_long spile_modulo(struct spile_context *c, spile_long a, spile_long b)
{
	if (spile_unlikely(!b)) {
		spile_fail(c, SPILE_E_DIVISION, 0);
		return 0;
	}
	if (spile_unlikely(b == -1))
		return 0;
	return a % b;
}
