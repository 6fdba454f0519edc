// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A build-id names what was linked, not what is in memory: a function may have
 * been patched since, or the file been edited. So before a guru script is armed
 * the code of each function with a probe in it is compared, byte by byte.
 *
 * The spans that the kernel itself writes over come with the imprint. What is
 * found here beside them:
 *
 * - words that moved with the kernel (KASLR): addresses of 32 bits differ by the
 *   slide, distances to per-CPU variables (which do not move) by its negative;
 * - other kprobes: a breakpoint, or a jump to the detour buffer of an optimised
 *   one, which begins with a copy of optprobe_template_entry.
 *
 * Everything else is somebody's patch.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "attach.h"
#include "imprint.h"
#include "module_symbols.h"
#include "session.h"

enum {
	BREAKPOINT = 0xcc,
	JUMP = 0xe9,
	JUMP_BYTES = 5,
};

/*
 * Without the kernel's header for it, which 6.12 moved. Little endian, as all that is
 * compared here.
 */
static u32 word_at(const unsigned char *bytes)
{
	u32 word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Kernels are moved by 2 MB or more (CONFIG_PHYSICAL_ALIGN): the two low bytes of a word stay. */
static unsigned int moved_word(const struct spile_imprint *imprint, const unsigned char *found,
			       unsigned int at)
{
	u32 slide = spile_attach_slide();
	unsigned int back;

	for (back = 2; slide && back <= 3; back++) {
		u32 difference;

		if (at < back || at - back + 4 > imprint->length)
			continue;
		difference = word_at(found + at - back) - word_at(imprint->bytes + at - back);
		if (difference == slide || difference == -slide)
			return at - back + 4;
	}
	return 0;
}

/* pushfq behind what the template pushes before it: 5.10 the stack pointer, later a segment too. */
static bool is_detour(unsigned long address)
{
	static const unsigned char templates[][4] = { { 0x54, 0x9c }, { 0x6a, 0x18, 0x54, 0x9c } };
	unsigned char start[4];

	return !copy_from_kernel_nofault(start, (const void *)address, sizeof(start)) &&
	       (!memcmp(start, templates[0], 2) || !memcmp(start, templates[1], 4));
}

static unsigned int kprobe_there(const struct spile_imprint *imprint, const unsigned char *found,
				 unsigned long address, unsigned int at)
{
	unsigned int back;

	/* The instruction that was there may have begun with the same byte. */
	for (back = 0; back < JUMP_BYTES && back <= at; back++) {
		unsigned int jump = at - back;

		if (found[jump] == JUMP && jump + JUMP_BYTES <= imprint->length &&
		    is_detour(address + jump + JUMP_BYTES + (s32)word_at(found + jump + 1)))
			return jump + JUMP_BYTES;
	}
	return found[at] == BREAKPOINT ? at + 1 : 0;
}

/* The first byte that should not be so; `length` if there is none. */
static unsigned int first_difference(const struct spile_imprint *imprint,
				     const unsigned char *found, unsigned long address)
{
	const struct spile_span *patched = imprint->patched;
	const struct spile_span *end = patched + imprint->patched_count;
	unsigned int at = 0;

	while (at < imprint->length) {
		unsigned int next;

		while (patched < end && patched->first + patched->length <= at)
			patched++;
		if (patched < end && patched->first <= at) {
			at = patched->first + patched->length;
			continue;
		}
		if (found[at] == imprint->bytes[at]) {
			at++;
			continue;
		}
		next = moved_word(imprint, found, at);
		if (!next)
			next = kprobe_there(imprint, found, address, at);
		if (!next)
			return at;
		at = next;
	}
	return imprint->length;
}

static unsigned long start_of(const struct spile_imprint *imprint, struct module *module)
{
	unsigned long anchor;

	if (!module)
		return imprint->address + spile_attach_slide();
	anchor = imprint->symbol ? spile_module_symbol_address(module, imprint->symbol) : 0;
	return anchor ? anchor + imprint->address : 0;
}

static bool holds(const struct spile_imprint *imprint, struct module *module)
{
	const char *place = module ? spile_script.targets[imprint->target].name : "kernel";
	unsigned long address = start_of(imprint, module);
	unsigned char *found;
	unsigned int at;

	found = kvmalloc(imprint->length, GFP_KERNEL);
	if (!found || !address ||
	    copy_from_kernel_nofault(found, (const void *)address, imprint->length)) {
		spile_session_emit(
			SPILE_RECORD_WARN,
			"%s: the code of \"%s\" cannot be read to compare it with what the script was compiled for: nothing is armed there",
			place, imprint->function);
		kvfree(found);
		return false;
	}
	at = first_difference(imprint, found, address);
	if (at < imprint->length)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"%s: the code of \"%s\" is not what the script was compiled for (at +0x%x there is %02x, not %02x): it has been patched, or the file was edited; nothing is armed there",
			place, imprint->function, at, found[at], imprint->bytes[at]);
	kvfree(found);
	return at == imprint->length;
}

bool spile_imprints_hold(unsigned int target, struct module *module)
{
	unsigned int i;

	for (i = 0; i < spile_script.imprint_count; i++) {
		if (spile_script.imprints[i].target == (int)target &&
		    !holds(&spile_script.imprints[i], module))
			return false;
		cond_resched();
	}
	return true;
}
