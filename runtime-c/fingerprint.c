// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A build-id identifies the linked file, not the code in memory: a function may have
 * been patched since, or the file been edited. So before a guru script is armed
 * the code of each function with a probe in it is compared, byte by byte.
 *
 * The fingerprint (struct spile_fingerprint) lists the spans that the kernel itself
 * patches. Two more kinds of differences are recognised here:
 *
 * - words that moved with the kernel (KASLR): addresses of 32 bits differ by the
 *   slide, distances to per-CPU variables (which do not move) by its negative;
 * - other kprobes: a breakpoint, or a jump to the detour buffer of an optimised
 *   one, which begins with a copy of optprobe_template_entry.
 *
 * Any other difference is a patch.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "attach.h"
#include "fingerprint.h"
#include "module_symbols.h"
#include "session.h"

enum {
	BREAKPOINT = 0xcc,
	JUMP = 0xe9,
	JUMP_BYTES = 5,
};

/*
 * The kernel's header for this was moved in 6.12. Little endian, as all data that is compared
 * here.
 */
static u32 word_at(const unsigned char *bytes)
{
	u32 word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Kernels are moved by 2 MB or more (CONFIG_PHYSICAL_ALIGN): the two low bytes of a word stay. */
static unsigned int moved_word(const struct spile_fingerprint *code, const unsigned char *found,
			       unsigned int at)
{
	u32 slide = spile_attach_slide();
	unsigned int back;

	for (back = 2; slide && back <= 3; back++) {
		u32 difference;

		if (at < back || at - back + 4 > code->length)
			continue;
		difference = word_at(found + at - back) - word_at(code->bytes + at - back);
		if (difference == slide || difference == -slide)
			return at - back + 4;
	}
	return 0;
}

/* pushfq, after the template's other pushes: the stack pointer in 5.10, later a segment too. */
static bool is_detour(unsigned long address)
{
	static const unsigned char templates[][4] = { { 0x54, 0x9c }, { 0x6a, 0x18, 0x54, 0x9c } };
	unsigned char start[4];

	return !copy_from_kernel_nofault(start, (const void *)address, sizeof(start)) &&
	       (!memcmp(start, templates[0], 2) || !memcmp(start, templates[1], 4));
}

static unsigned int kprobe_there(const struct spile_fingerprint *code, const unsigned char *found,
				 unsigned long address, unsigned int at)
{
	unsigned int back;

	/* The original instruction may have begun with the same byte. */
	for (back = 0; back < JUMP_BYTES && back <= at; back++) {
		unsigned int jump = at - back;

		if (found[jump] == JUMP && jump + JUMP_BYTES <= code->length &&
		    is_detour(address + jump + JUMP_BYTES + (s32)word_at(found + jump + 1)))
			return jump + JUMP_BYTES;
	}
	return found[at] == BREAKPOINT ? at + 1 : 0;
}

/* Offset of the first byte that differs without a known reason; `length` if there is none. */
static unsigned int first_difference(const struct spile_fingerprint *code,
				     const unsigned char *found, unsigned long address)
{
	const struct spile_span *patched = code->patched;
	const struct spile_span *end = patched + code->patched_count;
	unsigned int at = 0;

	while (at < code->length) {
		unsigned int next;

		while (patched < end && patched->first + patched->length <= at)
			patched++;
		if (patched < end && patched->first <= at) {
			at = patched->first + patched->length;
			continue;
		}
		if (found[at] == code->bytes[at]) {
			at++;
			continue;
		}
		next = moved_word(code, found, at);
		if (!next)
			next = kprobe_there(code, found, address, at);
		if (!next)
			return at;
		at = next;
	}
	return code->length;
}

static unsigned long start_of(const struct spile_fingerprint *code, struct module *module)
{
	unsigned long anchor;

	if (!module)
		return code->address + spile_attach_slide();
	anchor = code->symbol ? spile_module_symbol_address(module, code->symbol) : 0;
	return anchor ? anchor + code->address : 0;
}

static bool matches(const struct spile_fingerprint *code, struct module *module)
{
	const char *place = module ? spile_script.targets[code->target].name : "kernel";
	unsigned long address = start_of(code, module);
	unsigned char *found;
	unsigned int at;

	found = kvmalloc(code->length, GFP_KERNEL);
	if (!found || !address ||
	    copy_from_kernel_nofault(found, (const void *)address, code->length)) {
		spile_session_emit(
			SPILE_RECORD_WARN,
			"%s: the code of \"%s\" cannot be read to compare it with what the script was compiled for: nothing is armed there",
			place, code->function);
		kvfree(found);
		return false;
	}
	at = first_difference(code, found, address);
	if (at < code->length)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"%s: the code of \"%s\" is not what the script was compiled for (at +0x%x there is %02x, not %02x): it has been patched, or the file was edited; nothing is armed there",
			place, code->function, at, found[at], code->bytes[at]);
	kvfree(found);
	return at == code->length;
}

bool spile_fingerprints_match(unsigned int target, struct module *module)
{
	unsigned int i;

	for (i = 0; i < spile_script.fingerprint_count; i++) {
		if (spile_script.fingerprints[i].target == (int)target &&
		    !matches(&spile_script.fingerprints[i], module))
			return false;
		cond_resched();
	}
	return true;
}
