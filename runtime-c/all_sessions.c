// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Modules made by spile find each other by a parameter that each of them has, whose value is
 * where it states its shares.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "all_sessions.h"
#include "owner.h"

/* Whoever changes this gives the parameter another number: modules of several versions meet. */
struct session_load {
	u64 until;	/* get_cycles() of the CPU at the end of the interval */
	u64 interval;	/* its length */
	u32 share;
	u32 limited;	/* the session's user is */
};

static DEFINE_PER_CPU(struct session_load, session_load);

struct session_shares {
	struct session_load __percpu *loads;
};

static struct session_shares own_shares = { .loads = &session_load };

static int refuse_to_set(const char *value, const struct kernel_param *parameter)
{
	return -EPERM;
}

static const struct kernel_param_ops shares_parameter = { .set = refuse_to_set };

#define SHARES_PARAMETER spile_shares_1
module_param_cb(spile_shares_1, &shares_parameter, &own_shares, 0);

enum { MOST_SESSIONS = 64 };	/* more are not seen */

struct other_session {
	struct module *module;
	struct session_load __percpu *loads;	/* NULL: none; read by handlers */
};

static struct other_session other_sessions[MOST_SESSIONS];
static DEFINE_SPINLOCK(other_sessions_lock);

/* Where the module states its shares; NULL if it is not made by spile. */
static struct session_load __percpu *loads_of(const struct module *module)
{
	unsigned int i;

	for (i = 0; i < module->num_kp; i++) {
		const struct session_shares *shares = module->kp[i].arg;

		if (!strcmp(module->kp[i].name, __stringify(SHARES_PARAMETER)))
			return shares->loads;
	}
	return NULL;
}

static void add_session(struct module *module)
{
	struct session_load __percpu *loads = module == THIS_MODULE ? NULL : loads_of(module);
	struct other_session *unused = NULL;
	unsigned int i;

	if (!loads)
		return;
	spin_lock(&other_sessions_lock);
	for (i = 0; i < MOST_SESSIONS && other_sessions[i].module != module; i++)
		if (!other_sessions[i].module && !unused)
			unused = &other_sessions[i];
	/* Of one that goes this may have been notified already. */
	if (i == MOST_SESSIONS && unused && READ_ONCE(module->state) != MODULE_STATE_GOING) {
		unused->module = module;
		WRITE_ONCE(unused->loads, loads);
	}
	spin_unlock(&other_sessions_lock);
}

/* The kernel waits for RCU before it frees the module's memory; handlers are readers. */
static void remove_session(const struct module *module)
{
	unsigned int i;

	spin_lock(&other_sessions_lock);
	for (i = 0; i < MOST_SESSIONS; i++) {
		if (other_sessions[i].module != module)
			continue;
		WRITE_ONCE(other_sessions[i].loads, NULL);
		other_sessions[i].module = NULL;
	}
	spin_unlock(&other_sessions_lock);
}

static int see_module(struct notifier_block *block, unsigned long event, void *data)
{
	if (event == MODULE_STATE_COMING)
		add_session(data);
	else if (event == MODULE_STATE_GOING)
		remove_session(data);
	return NOTIFY_OK;
}

static struct notifier_block modules_seen = { .notifier_call = see_module };

int spile_sessions_init(void)
{
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct kobject *kobject;
	int error = register_module_notifier(&modules_seen);

	if (error || !modules)
		return error;
	/* A module is not freed while it is in the list. */
	spin_lock(&modules->list_lock);
	list_for_each_entry(kobject, &modules->list, entry) {
		struct module *module = container_of(kobject, struct module_kobject, kobj)->mod;

		/* None: code of the kernel itself. */
		if (module)
			add_session(module);
	}
	spin_unlock(&modules->list_lock);
	return 0;
}

void spile_sessions_exit(void)
{
	unregister_module_notifier(&modules_seen);
}

void spile_sessions_share(u32 own, u64 now, u64 interval, struct spile_other_shares *others)
{
	unsigned int i;

	this_cpu_write(session_load.share, own);
	this_cpu_write(session_load.interval, interval);
	this_cpu_write(session_load.limited, spile_owner_has_limit());
	this_cpu_write(session_load.until, now);
	*others = (struct spile_other_shares){};
	/* Where RCU does not watch, a module that goes would not wait for this. */
	for (i = 0; i < MOST_SESSIONS && rcu_is_watching(); i++) {
		const struct session_load __percpu *loads = READ_ONCE(other_sessions[i].loads);
		const struct session_load *load;
		u32 share;

		if (!loads)
			continue;
		load = this_cpu_ptr(loads);
		/* Only what was taken during our interval, at least in part. */
		if (now - READ_ONCE(load->until) >= max(interval, READ_ONCE(load->interval)))
			continue;
		share = READ_ONCE(load->share);
		others->all += share;
		others->most = max(others->most, share);
		if (!READ_ONCE(load->limited))
			continue;
		others->limited += share;
		others->most_limited = max(others->most_limited, share);
	}
}
