// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The parts that scripts need or not (script.h, SPILE_NEEDS()), by the functions that the rest of
 * the runtime calls only if they are there (optional.h).
 */
#include <linux/kernel.h>

#include "all_sessions.h"
#include "arming.h"
#include "budget.h"
#include "condition.h"
#include "cpu_events.h"
#include "entry.h"
#include "exceptions.h"
#include "gate.h"
#include "map_init.h"
#include "module_notifier.h"
#include "past_code.h"
#include "scalar.h"
#include "script.h"
#include "setting.h"
#include "site.h"
#include "stack_left.h"
#include "symbol.h"
#include "uprobe.h"
#include "user_files.h"

/* A part is nothing but references. */
#define SPILE_PART(name, ...) \
	const void *const spile_part_##name[] = { __VA_ARGS__ }

#define MODULES spile_modules_init, spile_modules_exit, spile_modules_check

/* Probes that are armed. */
SPILE_PART(sites, MODULES, spile_sites_arm, spile_sites_prepare, spile_sites_disarm_most,
	   spile_sites_disarm_some, spile_arming_judge, spile_arming_state, spile_entry_init,
	   spile_entry_exit, spile_entry_remove_some, spile_budget_measure, spile_budget_sample,
	   spile_budget_forget, spile_budget_exit, spile_condition_switch, spile_conditions_look,
	   spile_condition_apply, spile_conditions_init, spile_conditions_exit,
	   spile_cpu_events_exit, spile_sessions_init, spile_sessions_exit, spile_sessions_share);
/* Names of addresses, which the loader asks for. */
SPILE_PART(symbols, MODULES, spile_symbol_find, spile_past_code_event, spile_past_code_exit);
/* Arrays and aggregates. */
SPILE_PART(arrays, spile_maps_init, spile_maps_exit, spile_scalars_init);
/* The session's processes. */
SPILE_PART(followed, spile_follow_begin, spile_follow_exit);
/* Probes in programs, and for processes. */
SPILE_PART(programs, spile_programs_open, spile_programs_exit, spile_begun_prepare,
	   spile_begun_by_loader, spile_begun_runs, spile_begun_exit);
/* Stacks of programs. */
SPILE_PART(user_files, spile_user_files_init, spile_user_files_exit, spile_user_files_find,
	   spile_user_files_next_wanted, spile_user_files_unwind, spile_user_files_wanted,
	   spile_tables_await, spile_tables_added);
/* Counters of the threads that run a program. */
SPILE_PART(program_counters, spile_program_counters_begin);
/* Exceptions that pass through probed returns. */
SPILE_PART(exceptions, spile_exceptions_init, spile_exceptions_exit, spile_exceptions_arm,
	   spile_exceptions_detach);
/* Globals that the loader sets. */
SPILE_PART(settings, spile_setting_set, spile_setting_in_commands);
