// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Modules with probes in them.
 *
 * A probed module is never pinned: no reference is held between calls. kprobes hold none either.
 * The GOING notification, which the kernel waits for before it frees anything, removes our sites
 * from it.
 *
 * Lock order: the notifier chains' own locks, then spile_session.lock. So the notifiers are
 * registered and unregistered without the latter.
 */
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "build_id.h"
#include "features.h"
#include "fingerprint.h"
#include "module_notifier.h"
#include "module_symbols.h"
#include "optional.h"
#include "past_code.h"
#include "session.h"
#include "site.h"

/* The state of a target; under spile_session.lock. */
struct target_state {
	bool present;	/* loaded, and the build that the script was compiled for */
	bool refused;	/* coming or loaded, but another build: already reported */
	bool is_script;	/* while present: made by spile itself */
	struct module *module;	/* while present; GOING clears it before it is freed */
};
static struct target_state *states;

/*
 * Whether the module is the build that the script was compiled for; if not, a WARN
 * record says so.
 */
static bool is_right_build(const struct spile_target *target, const struct module *module)
{
	unsigned char found[SPILE_BUILD_ID_MAX];
	unsigned int found_bytes = 0;
	char expected_text[SPILE_BUILD_ID_TEXT], found_text[SPILE_BUILD_ID_TEXT];
	const void *rodata;
	size_t bytes;

	if (!target->build_id_bytes)
		return true;
	rodata = spile_module_rodata(module, &bytes);
	if (spile_build_id_scan(target->build_id, target->build_id_bytes, rodata, bytes, found,
				&found_bytes))
		return true;
	spile_session_emit(
		SPILE_RECORD_WARN,
		"Build-id mismatch [man warning::buildid]: module \"%s\" expected %s actual %s",
		target->name,
		spile_build_id_text(expected_text, target->build_id, target->build_id_bytes),
		spile_build_id_text(found_text, found, found_bytes));
	return false;
}

/*
 * The loaded module of that name, or NULL, found in sysfs (/sys/module/NAME;
 * module_kset is not exported, but our own kobject has its kset). The reference to the
 * kobject keeps the struct module: free_module() waits for it (mod_kobject_put()). Drop
 * it soon, and do not sleep for long meanwhile.
 */
static struct kobject *find_loaded(const char *name, struct module **module)
{
	struct kobject *kobject = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, name);

	*module = NULL;
	if (!kobject)
		return NULL;
	*module = container_of(kobject, struct module_kobject, kobj)->mod;	/* 0: built in */
	return kobject;
}

/* Recognised by a function of the runtime whose name the kernel keeps in any configuration. */
static bool is_script(struct module *module)
{
	return spile_module_symbol_address(module, "spile_context_run") != 0;
}

int spile_modules_check(void)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < spile_script.target_count; i++) {
		const struct spile_target *target = &spile_script.targets[i];
		struct kobject *kobject;
		struct module *module;

		if (!target->name[0] && !spile_fingerprints_match(i, NULL))
			error = -EKEYREJECTED;
		if (!target->name[0] || states[i].present)
			continue;
		kobject = find_loaded(target->name, &module);
		/*
		 * A module that is being loaded or unloaded is left to its notification, which
		 * waits for spile_session.lock.
		 */
		if (module && READ_ONCE(module->state) == MODULE_STATE_LIVE) {
			states[i].present = is_right_build(target, module) &&
					    spile_fingerprints_match(i, module);
			states[i].module = module;
			states[i].is_script = is_script(module);
			if (states[i].present)
				spile_module_symbols_find(i, module);
			else
				error = -EKEYREJECTED;
		}
		kobject_put(kobject);
	}
	return error;
}

bool spile_modules_is_script(const struct spile_site *site)
{
	const char *colon = site->symbol ? strchr(site->symbol, ':') : NULL;
	char name[MODULE_NAME_LEN];
	struct kobject *kobject;
	struct module *module;
	bool result;

	if (site->probe->target >= 0)
		return states[site->probe->target].present && states[site->probe->target].is_script;
	if (!colon || colon - site->symbol >= (long)sizeof(name))
		return false;
	strscpy(name, site->symbol, colon - site->symbol + 1);
	kobject = find_loaded(name, &module);
	result = module && is_script(module);
	kobject_put(kobject);
	return result;
}

bool spile_modules_present(unsigned int target)
{
	return states[target].present;
}

struct module *spile_modules_of(unsigned int target)
{
	return states[target].present ? states[target].module : NULL;
}

/*
 * COMING is sent before the module's init runs. It is recorded even before the session runs,
 * because sysfs does not have the module yet. LIVE handles modules whose COMING was before our
 * notifier was registered.
 */
static void module_comes(unsigned int i, struct module *module)
{
	const struct spile_target *target = &spile_script.targets[i];

	if (states[i].present || states[i].refused || spile_session_state > SPILE_STATE_RUNNING)
		return;
	states[i].present = is_right_build(target, module) && spile_fingerprints_match(i, module);
	states[i].refused = !states[i].present;
	states[i].module = module;
	states[i].is_script = is_script(module);
	if (states[i].refused)
		return;
	spile_module_symbols_find(i, module);
	if (spile_session_state != SPILE_STATE_RUNNING)
		return;
	spile_sites_arm(i);
	spile_session_emit(SPILE_RECORD_NOTICE, "module \"%s\" has come: probes armed",
			   target->name);
}

static void module_goes(unsigned int i)
{
	states[i].refused = false;
	if (!states[i].present)
		return;
	states[i].present = false;
	spile_sites_disarm(i);
	spile_module_symbols_forget(i);
	if (spile_session_state == SPILE_STATE_RUNNING)
		spile_session_emit(SPILE_RECORD_NOTICE, "module \"%s\" has gone: probes disarmed",
				   spile_script.targets[i].name);
}

/*
 * A live patch may replace a function that a workaround was compiled for. Functions are
 * checked before they are armed (by the loader, and by spile_fingerprints_match()), but a
 * patch may be loaded later. At LIVE its init has run and enabled it, so the loader finds
 * in sysfs which functions it replaces; its struct klp_patch cannot be found from here.
 * There is no notification for a patch that is enabled again by hand.
 */
static void live_patch_comes(const struct module *module)
{
	mutex_lock(&spile_session.lock);
	if (spile_session_state == SPILE_STATE_RUNNING)
		spile_session_emit(SPILE_RECORD_LIVEPATCH, "%s", module->name);
	mutex_unlock(&spile_session.lock);
}

static int notify(struct notifier_block *block, unsigned long event, void *data)
{
	struct module *module = data;
	unsigned int i;

	if (spile_script.defers_names)
		spile_call_if_there(spile_past_code_event, event, module);
	if (event == MODULE_STATE_LIVE && spile_script.fingerprint_count &&
	    is_livepatch_module(module))
		live_patch_comes(module);
	for (i = 0; i < spile_script.target_count; i++) {
		const char *name = spile_script.targets[i].name;

		if (!name[0] || strcmp(name, module->name))
			continue;
		mutex_lock(&spile_session.lock);
		if (event == MODULE_STATE_GOING)
			module_goes(i);
		else if (event == MODULE_STATE_COMING || event == MODULE_STATE_LIVE)
			module_comes(i, module);
		mutex_unlock(&spile_session.lock);
	}
	return NOTIFY_DONE;
}

/*
 * Runs after kprobes' notifier (priority INT_MAX) and ftrace's handling of new modules:
 * both must know the module before a probe is placed in it.
 */
static struct notifier_block notifier = {
	.notifier_call = notify,
};

/*
 * A module's tracepoints must have no probes left after the kernel has called this
 * chain for it, or it warns. The chain runs before our module notifier.
 */
static int notify_tracepoints(struct notifier_block *block, unsigned long event, void *data)
{
	const struct tp_module *tracepoints = data;
	unsigned int i;

	if (event != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	for (i = 0; i < spile_script.target_count; i++) {
		if (strcmp(spile_script.targets[i].name, tracepoints->mod->name))
			continue;
		mutex_lock(&spile_session.lock);
		module_goes(i);
		mutex_unlock(&spile_session.lock);
	}
	return NOTIFY_DONE;
}

static struct notifier_block tracepoint_notifier = {
	.notifier_call = notify_tracepoints,
};

int spile_modules_init(void)
{
	int error;

	states = kcalloc(max(spile_script.target_count, 1u), sizeof(*states), GFP_KERNEL);
	if (!states)
		return -ENOMEM;
	error = register_module_notifier(&notifier);
	if (error)
		goto err_notifier;
	error = register_tracepoint_module_notifier(&tracepoint_notifier);
	if (error)
		goto err_tracepoints;
	return 0;

err_tracepoints:
	unregister_module_notifier(&notifier);
	spile_call_if_there(spile_past_code_exit);
err_notifier:
	kfree(states);
	return error;
}

void spile_modules_exit(void)
{
	/*
	 * Calls notify_tracepoints() with GOING for every module: nothing is armed any
	 * more.
	 */
	unregister_tracepoint_module_notifier(&tracepoint_notifier);
	unregister_module_notifier(&notifier);
	spile_call_if_there(spile_past_code_exit);
	kfree(states);
}
