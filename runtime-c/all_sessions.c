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
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "all_sessions.h"

/* Whoever changes this gives the parameter another number: modules of several versions meet. */
struct session_load {
	u64 until;	/* get_cycles() of the CPU at the end of the interval */
	u32 share;
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

enum { MOST_SESSIONS = 64 };	/* later ones are limited by themselves only */

struct other_session {
	struct module *module;
	struct session_load __percpu *loads;	/* NULL: none; read by handlers */
};

static struct other_session other_sessions[MOST_SESSIONS];
static DEFINE_MUTEX(other_sessions_lock);

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

/* The module cannot go before this returns. */
static void add_session(struct module *module)
{
	struct session_load __percpu *loads = module == THIS_MODULE ? NULL : loads_of(module);
	struct other_session *unused = NULL;
	unsigned int i;

	if (!loads)
		return;
	mutex_lock(&other_sessions_lock);
	for (i = 0; i < MOST_SESSIONS; i++) {
		if (other_sessions[i].module == module)
			break;
		if (!other_sessions[i].module && !unused)
			unused = &other_sessions[i];
	}
	if (i == MOST_SESSIONS && unused) {
		unused->module = module;
		WRITE_ONCE(unused->loads, loads);
	}
	mutex_unlock(&other_sessions_lock);
}

static void remove_session(const struct module *module)
{
	bool was_there = false;
	unsigned int i;

	mutex_lock(&other_sessions_lock);
	for (i = 0; i < MOST_SESSIONS; i++) {
		if (other_sessions[i].module != module)
			continue;
		WRITE_ONCE(other_sessions[i].loads, NULL);
		other_sessions[i].module = NULL;
		was_there = true;
	}
	mutex_unlock(&other_sessions_lock);
	/* Its memory is freed after the notification; handlers read it with preemption off. */
	if (was_there)
		synchronize_rcu();
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

/* With a reference; NULL: there are fewer. */
static struct kobject *nth_module(struct kset *modules, unsigned int number)
{
	struct kobject *kobject, *found = NULL;

	spin_lock(&modules->list_lock);
	list_for_each_entry(kobject, &modules->list, entry) {
		if (!number--) {
			found = kobject_get(kobject);
			break;
		}
	}
	spin_unlock(&modules->list_lock);
	return found;
}

int spile_sessions_init(void)
{
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct kobject *kobject;
	unsigned int i;
	int error = register_module_notifier(&modules_seen);

	/* One that is loaded or unloaded meanwhile is seen by its notification. */
	for (i = 0; !error && modules && (kobject = nth_module(modules, i)); i++) {
		struct module *module = container_of(kobject, struct module_kobject, kobj)->mod;

		if (module && try_module_get(module)) {
			add_session(module);
			module_put(module);
		}
		kobject_put(kobject);
	}
	return error;
}

void spile_sessions_exit(void)
{
	unregister_module_notifier(&modules_seen);
}

u32 spile_sessions_share(u32 own, u64 now, u64 interval, u32 *most)
{
	u32 others = 0;
	unsigned int i;

	this_cpu_write(session_load.share, own);
	this_cpu_write(session_load.until, now);
	*most = 0;
	/* Where RCU does not watch, a module that goes would not wait for this. */
	for (i = 0; i < MOST_SESSIONS && rcu_is_watching(); i++) {
		const struct session_load __percpu *loads = READ_ONCE(other_sessions[i].loads);
		const struct session_load *load;
		u32 share;

		if (!loads)
			continue;
		load = this_cpu_ptr(loads);
		share = READ_ONCE(load->share);
		if (now - READ_ONCE(load->until) > 2 * interval)
			continue;
		others += share;
		*most = max(*most, share);
	}
	return others;
}
