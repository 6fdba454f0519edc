// SPDX-License-Identifier: GPL-2.0-or-later
/* Reports at the end of the session about stacks that were truncated when taken or stored. */
#include <linux/compiler.h>
#include <linux/percpu.h>

#include "context.h"
#include "kept_text.h"
#include "session.h"
#include "stack_report.h"

void spile_stacks_report(void)
{
	u64 refused = READ_ONCE(spile_kept.refused), cut = READ_ONCE(spile_kept.cut);
	u64 deep = 0, short_of_text = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		deep += READ_ONCE(per_cpu(spile_cpus, cpu)->stacks_deep);
		short_of_text += READ_ONCE(per_cpu(spile_cpus, cpu)->stacks_cut);
	}
	/* A smaller MAXBACKTRACE was chosen by the user. */
	if (deep && spile_script.stack_frames == SPILE_STACK_FRAMES)
		spile_session_emit(SPILE_RECORD_WARN,
				   "%llu stacks had more than %u frames: they lack the outermost",
				   deep, SPILE_STACK_FRAMES);
	if (short_of_text)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"%llu stacks did not fit in a string (MAXSTRINGLEN=%u): they lack the outermost frames",
			short_of_text, spile_script.string_bytes);
	if (refused)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"the memory for stacks in arrays (%u bytes) was full: elements for new keys were not made %llu times (-DMAXSTACKBYTES=N gives more)",
			spile_script.kept_bytes, refused);
	if (cut)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"the memory for stacks in arrays (%u bytes) was full: %llu values lack the outermost frames (-DMAXSTACKBYTES=N gives more)",
			spile_script.kept_bytes, cut);
}
