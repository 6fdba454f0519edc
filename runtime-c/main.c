// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A module built by spile: its parts, started in order and ended in reverse.
 *
 * Loading only allocates memory and creates the control device. Nothing of the script runs and
 * nothing is armed before the loader requests it (abi.h).
 */
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/module.h>

#include "actions.h"
#include "all_sessions.h"
#include "condition.h"
#include "context.h"
#include "control.h"
#include "cpu_events.h"
#include "entry.h"
#include "family.h"
#include "gate.h"
#include "kernel_id.h"
#include "lock.h"
#include "map_init.h"
#include "module_notifier.h"
#include "optional.h"
#include "owner.h"
#include "raise.h"
#include "ring.h"
#include "session.h"
#include "site.h"
#include "stack_left.h"
#include "uprobe.h"
#include "user_files.h"

/*
 * rmmod -f ignores references. The device's file operations are in this module, so all users
 * must be out of them before anything is freed. The loader closes the device when it is told
 * that the session has ended; this waits for a loader that is stopped (SIGSTOP).
 */
static void wait_for_users(void)
{
#ifdef CONFIG_MODULE_FORCE_UNLOAD
	while (module_refcount(THIS_MODULE) > 0)
		msleep(20);
#endif
}

/*
 * Without force the device is closed, and its release has stopped the session, unless
 * that was kept (SPILE_KEEP).
 */
static void end_session(void)
{
	/* First, so that its progress can be asked for. */
	spile_session_disarm_rest();
	spile_control_exit();
#ifdef CONFIG_MODULE_FORCE_UNLOAD
	if (module_refcount(THIS_MODULE) > 0)
		spile_session_removed();
#endif
	spile_session_stop();
	wait_for_users();
	/* Of a session that was kept, or removed by force. */
	spile_session_disarm_rest();
}

/*
 * Started in this order, ended in the reverse. A part that cannot fail has prepare() in
 * place of init(). What a script does not need is NULL (optional.c).
 */
static const struct part {
	int (*init)(void);
	void (*prepare)(void);
	void (*exit)(void);
} parts[] SPILE_KEEPS_NOTHING = {
	{ .prepare = spile_owner_init, .exit = spile_owner_exit },
	{ .init = spile_kernel_id_check },
	{ .init = spile_sessions_init, .exit = spile_sessions_exit },
	{ .init = spile_sites_init, .exit = spile_sites_exit },
	{ .exit = spile_programs_exit },
	{ .exit = spile_follow_exit },
	{ .exit = spile_begun_exit },
	{ .init = spile_families_init, .exit = spile_families_exit },
	{ .exit = spile_cpu_events_exit },
	{ .init = spile_entry_init, .exit = spile_entry_exit },
	{ .prepare = spile_actions_init },
	{ .init = spile_context_init, .exit = spile_context_exit },
	{ .init = spile_user_files_init, .exit = spile_user_files_exit },
	{ .prepare = spile_stack_init, .exit = spile_stack_exit },
	/* Made by SPILE_SETUP. */
	{ .exit = spile_maps_exit },
	{ .exit = spile_lock_exit },
	/* After ring.c, which may request its work item. */
	{ .exit = spile_session_exit },
	{ .prepare = spile_ring_init, .exit = spile_ring_exit_all },
	{ .prepare = spile_raise_init, .exit = spile_raise_exit },
	{ .prepare = spile_conditions_init, .exit = spile_conditions_exit },
	{ .init = spile_modules_init, .exit = spile_modules_exit },
	{ .exit = spile_gate_exit },
	/* Last, because from here on a loader can begin a session. */
	{ .init = spile_control_init, .exit = end_session },
};

/* What every module has of them. */
static const void *const everywhere[] __used __initconst = {
	spile_owner_init, spile_owner_exit, spile_kernel_id_check, spile_sites_init,
	spile_sites_exit, spile_families_init, spile_families_exit, spile_actions_init,
	spile_context_init, spile_context_exit, spile_stack_init, spile_stack_exit,
	spile_lock_exit, spile_session_exit, spile_ring_init, spile_ring_exit_all,
	spile_raise_init, spile_raise_exit, spile_gate_exit, spile_control_init, end_session,
};

/* Ends the first `count` parts. */
static void end_parts(unsigned int count)
{
	while (count--) {
		void (*leave)(void) = READ_ONCE(parts[count].exit);

		if (leave)
			leave();
	}
}

static int __init spile_init(void)
{
	unsigned int i;
	int error;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		int (*init)(void) = READ_ONCE(parts[i].init);
		void (*prepare)(void) = READ_ONCE(parts[i].prepare);

		if (prepare)
			prepare();
		error = init ? init() : 0;
		if (error) {
			end_parts(i);
			return error;
		}
	}
	return 0;
}

static void __exit spile_exit_module(void)
{
	end_parts(ARRAY_SIZE(parts));
}

module_init(spile_init);
module_exit(spile_exit_module);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("SystemTap-language script, compiled by spile");
