// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A script's unit as the compiler could have made it, for the reference module (Makefile.kbuild,
 * use 3): it is built by Kbuild and again by replaying the commands, and the results have to be
 * equal. So it has constructs that compilers and objtool treat specially: a stack protector's
 * array, a call through a pointer, a switch, a loop, memory that is cleared and copied. Never
 * loaded.
 */
#include "script.h"
#include "builtins.h"

static spile_long calls;

static __attribute__((__noinline__)) spile_long chosen(spile_long number)
{
	switch (number) {
	case 0: return 7;
	case 1: return calls;
	case 2: return number << 9;
	case 3: return spile_divide(0, number, calls);
	case 4: return 99;
	case 5: return number * calls;
	default: return -1;
	}
}

static __attribute__((__noinline__)) void copy(struct spile_context *c, struct spile_probe *to)
{
	char text[128];
	struct spile_probe probe = { .point = "begin", .order = c->error };
	spile_long turn;

	for (turn = 0; turn < chosen(c->actions); turn++)
		text[turn & 127] = (char)turn;
	spile_string_copy(c->frame, (struct spile_string){ text, 128 });
	*to = probe;
}

static void handler(struct spile_context *c)
{
	struct spile_probe probe;

	calls++;
	copy(c, &probe);
	if (spile_unlikely(c->error))
		probe.handler(c);
	spile_fail(c, SPILE_E_DIVISION, chosen(probe.order));
}

static const struct spile_probe probes[] = {
	{
		.point = "begin",
		.script_point = "begin",
		.kind = SPILE_PROBE_BEGIN,
		.handler = handler,
	},
};

const struct spile_script spile_script = {
	.title = "reference",
	.probes = probes,
	.probe_count = 1,
};

static const unsigned char meta[]
	__attribute__((section(".spile.meta"), used, aligned(8))) = { 1, 2, 3 };
static const char modinfo[]
	__attribute__((section(".modinfo"), used, aligned(1))) = "spile_reference=1";
