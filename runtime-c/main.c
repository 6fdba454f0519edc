// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A module built by spile: what starts in which order, and ends in reverse.
 *
 * Loading only makes memory and the control device. Nothing of the script runs
 * and nothing is armed before the loader says so (abi.h).
 */
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/module.h>

#include "actions.h"
#include "context.h"
#include "control.h"
#include "entry.h"
#include "gate.h"
#include "kernel_id.h"
#include "lock.h"
#include "condition.h"
#include "map_init.h"
#include "module_notifier.h"
#include "owner.h"
#include "raise.h"
#include "procfs.h"
#include "ring.h"
#include "session.h"
#include "site.h"
#include "stack_left.h"
#include "syscall_entry.h"

static int __init spile_init(void)
{
	int error;

	spile_owner_init();
	error = spile_kernel_id_check();
	if (error)
		return error;
	error = spile_returns_init();
	if (error)
		return error;
	error = spile_sites_init();
	if (error)
		return error;
	error = spile_entry_init();
	if (error)
		goto err_entry;
	spile_actions_init();
	error = spile_context_init();
	if (error)
		goto err_context;
	spile_stack_init();
	error = spile_maps_init();
	if (error)
		goto err_maps;
	error = spile_lock_init();
	if (error)
		goto err_lock;
	spile_ring_init();
	spile_raise_init();
	spile_conditions_init();
	spile_procfs_init();
	error = spile_syscall_entry_init();
	if (error)
		goto err_syscall_entry;
	error = spile_modules_init();
	if (error)
		goto err_modules;
	error = spile_control_init();
	if (error)
		goto err_control;
	return 0;

err_control:
	spile_modules_exit();
err_modules:
	spile_syscall_entry_exit();
err_syscall_entry:
	spile_lock_exit();
err_lock:
	spile_maps_exit();
err_maps:
	spile_stack_exit();
	spile_context_exit();
err_context:
	spile_entry_exit();
err_entry:
	spile_sites_exit();
	return error;
}

/*
 * rmmod -f does not ask who has the device open. Its file operations are ours:
 * whoever is in them has to be out before anything of us goes. The loader ends
 * when it hears that the session has; one that is stopped (SIGSTOP) is waited for.
 */
static void wait_for_users(void)
{
#ifdef CONFIG_MODULE_FORCE_UNLOAD
	while (module_refcount(THIS_MODULE) > 0)
		msleep(20);
#endif
}

/* Without force nobody has the device open, so its release has stopped the session, unless it was kept. */
static void __exit spile_exit_module(void)
{
	spile_control_exit();
#ifdef CONFIG_MODULE_FORCE_UNLOAD
	if (module_refcount(THIS_MODULE) > 0)
		spile_session_removed();
#endif
	spile_session_stop();
	wait_for_users();
	spile_gate_exit();
	spile_modules_exit();
	spile_raise_exit();
	spile_conditions_exit();
	spile_syscall_entry_exit();
	spile_ring_exit_all();
	spile_lock_exit();
	spile_maps_exit();
	spile_stack_exit();
	spile_context_exit();
	spile_entry_exit();
	spile_sites_exit();
	spile_owner_exit();
}

module_init(spile_init);
module_exit(spile_exit_module);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("SystemTap-language script, compiled by spile");
