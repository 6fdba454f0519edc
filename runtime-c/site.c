// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probe sites: made at load time, armed and disarmed by target, counted.
 */
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "arming.h"
#include "attach.h"
#include "condition.h"
#include "context.h"
#include "entry.h"
#include "family.h"
#include "module_notifier.h"
#include "optional.h"
#include "session.h"
#include "site.h"
#include "stack_left.h"
#include "uprobe.h"

enum {
	MIXED_SITES = 200,		/* fewer sites keep the order of the script */
	MOST_IN_STEP = 256,		/* of disarming: one wait for all CPUs serves many */
};

struct spile_site *spile_sites;
void **spile_sites_room;

/* begin, end and error probes, sorted by kind, order and index; and room for one call of disarm(). */
static struct spile_site **in_order;
static unsigned int ordered;
static struct spile_site **batch;	/* or of arm_others(); under spile_session.lock */

static void report_failure(const struct spile_site *site, int error)
{
	const struct spile_probe *probe = site->probe;

	/*
	 * Not while hits are counted (budget.c): it is reported when the session starts.
	 * Sites that were skipped because arming was ended are not an error.
	 */
	if (spile_session_state == SPILE_STATE_READY || spile_arming_ended() ||
	    spile_program_is_refused(site))
		return;
	if (site->family->reports && site->family->reports(site, error))
		return;
	if (spile_modules_is_script(site))
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s: refused: it is in a module made by spile, whose code runs at hits",
			probe->point);
	else if (probe->symbol)
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s (%s:%s+0x%lx) registration error [man warning::pass5] (rc %d)",
			probe->point, probe->module, probe->symbol, probe->address, error);
	else if (probe->target < 0 || !probe->address)
		spile_session_emit(SPILE_RECORD_WARN,
				   "probe %s registration error [man warning::pass5] (rc %d)",
				   probe->point, error);
	else
		spile_session_emit(
			SPILE_RECORD_WARN,
			"probe %s (address 0x%lx) registration error [man warning::pass5] (rc %d)",
			probe->point, probe->address, error);
}

void spile_site_unarmed(struct spile_site *site, int error)
{
	site->armed = false;
	spile_session.armed--;
	report_failure(site, error);
}

static void is_armed(struct spile_site *site)
{
	site->armed = true;
	WRITE_ONCE(spile_session.armed, spile_session.armed + 1);
	if (spile_session_state != SPILE_STATE_READY)
		/* earlier, no begin probe would have set the globals that it reads */
		spile_condition_apply(site);
}

static bool is_unarmed(const struct spile_site *site, int target)
{
	return site->family && !site->armed && site->probe->target == target;
}

/* *left counts those of the same families that it leaves. */
static void arm_cheap_ones(int target, unsigned int *left)
{
	unsigned int i;

	spile_attach_find(target);
	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_site *site = &spile_sites[i];

		if (!is_unarmed(site, target) || !site->family->arm_cheaply)
			continue;
		if (!spile_arming_goes_on())
			break;
		if (!spile_modules_is_script(site) && site->family->arm_cheaply(site))
			is_armed(site);
		else
			++*left;
	}
}

static unsigned long location(const struct spile_site *site)
{
	return site->place ?: site->probe->address;
}

/* Sites in the same place have the same. */
static u32 mixed_order(const struct spile_site *site)
{
	return hash_long(location(site), 32);
}

/*
 * Places that become kprobes are mixed, those of all targets together, so that the first
 * ones take as long as the others (pace.c): neighbours are in the same function. Sites in
 * one place follow each other, in the order of the script. Other sites come first, in the
 * order of gather_others().
 */
static int compare_mixed(const void *a, const void *b)
{
	const struct spile_site *one = *(struct spile_site *const *)a;
	const struct spile_site *two = *(struct spile_site *const *)b;
	bool first = one->probe->kind == SPILE_PROBE_KPROBE;
	bool second = two->probe->kind == SPILE_PROBE_KPROBE;
	bool reverse = one->family->last_runs_first;

	if (first != second)
		return first ? 1 : -1;
	if (first && mixed_order(one) != mixed_order(two))
		return mixed_order(one) < mixed_order(two) ? -1 : 1;
	/* Of places with the same hash. */
	if (first && location(one) != location(two))
		return location(one) < location(two) ? -1 : 1;
	if (reverse != two->family->last_runs_first)
		return reverse ? 1 : -1;
	return (one->index < two->index) != reverse ? -1 : 1;
}

static bool is_among_others(const struct spile_site *site, int target, bool reverse)
{
	return is_unarmed(site, target) && !site->family->arms_last &&
	       site->family->last_runs_first == reverse;
}

/* Adds the sites that arm_cheap_ones() has left to the batch, but those that come last. */
static void gather_others(int target, unsigned int *count)
{
	unsigned int i;

	for (i = 0; i < spile_script.probe_count; i++)
		if (is_among_others(&spile_sites[i], target, false))
			batch[(*count)++] = &spile_sites[i];
	while (i--)
		if (is_among_others(&spile_sites[i], target, true))
			batch[(*count)++] = &spile_sites[i];
}

/* Of two of the batch. False where only the kernel can tell. */
static bool are_in_one_place(const struct spile_site *one, const struct spile_site *two)
{
	if (one->family != two->family || one->probe->target != two->probe->target)
		return false;
	if (one->place || two->place)
		return one->place == two->place;
	return !one->symbol && !two->symbol && one->probe->address == two->probe->address;
}

/* Of `count` sites, those with work for the kernel: sites in one place follow each other. */
static unsigned int count_places(unsigned int count)
{
	unsigned int places = 0, i;

	for (i = 0; i < count; i++)
		if (batch[i]->family->measure_enabling &&
		    (!i || !batch[i]->family->arm_beside ||
		     !are_in_one_place(batch[i - 1], batch[i])))
			places++;
	return places;
}

/*
 * Arms site `i` of the batch beside the last one before it in the same place with which it
 * may share. `mixed`: sites in one place follow each other. Linear: a site that may share
 * decides it for those before it, and the walk to it only passes sites that may not.
 */
static bool arm_beside_another(unsigned int i, bool mixed)
{
	struct spile_site *site = batch[i];
	unsigned int k;

	if (!site->family->arm_beside || !spile_site_may_share(site, site))
		return false;
	for (k = i; k--;) {
		if (!are_in_one_place(batch[k], site)) {
			if (mixed)
				break;
		} else if (spile_site_may_share(batch[k], site)) {
			return batch[k]->armed && site->family->arm_beside(batch[k], site);
		}
	}
	return false;
}

static void arm_one(struct spile_site *site)
{
	int error = spile_modules_is_script(site) ? -EPERM : site->family->arm(site);

	if (error)
		report_failure(site, error);
	else
		is_armed(site);
}

/* Of the families that come last; called by arm_each(), which has nothing to count here. */
static void arm_last_ones(int target, unsigned int *unused)
{
	unsigned int i;

	for (i = 0; i < spile_script.probe_count; i++)
		if (is_unarmed(&spile_sites[i], target) && spile_sites[i].family->arms_last &&
		    spile_arming_goes_on())
			arm_one(&spile_sites[i]);
}

/* `left`: how many arm_cheap_ones() has left. */
static void arm_others(unsigned int count, unsigned int left)
{
	bool mixed = left >= MIXED_SITES;
	unsigned int i;

	/* Cancelled earlier: nothing is left to do, and sorting takes a second of thousands. */
	if (spile_arming_ended())
		return;
	if (mixed)
		sort(batch, count, sizeof(*batch), compare_mixed, NULL);
	spile_arming_begins(left, mixed ? count_places(count) : left);
	for (i = 0; i < count; i++) {
		struct spile_site *site = batch[i];

		if (!spile_arming_goes_on())
			break;
		if (arm_beside_another(i, mixed)) {
			is_armed(site);
			continue;
		}
		arm_one(site);
		if (site->family->measure_enabling)
			spile_arming_registered(site->family->measure_enabling);
	}
}

/*
 * The target that is armed after `target`: each present target, from SPILE_ALL_TARGETS on,
 * then -1, then SPILE_ALL_TARGETS.
 */
static int next_target(int target)
{
	if (target == -1)
		return SPILE_ALL_TARGETS;
	for (target = target == SPILE_ALL_TARGETS ? 0 : target + 1;
	     target < (int)spile_script.target_count; target++)
		if (!spile_script.targets[target].name[0] || spile_modules_present(target))
			return target;
	return -1;
}

static void arm_each(int only, void (*arm)(int target, unsigned int *count), unsigned int *count)
{
	int target = SPILE_ALL_TARGETS;

	if (only != SPILE_ALL_TARGETS) {
		arm(only, count);
		return;
	}
	while ((target = next_target(target)) != SPILE_ALL_TARGETS)
		arm(target, count);
}

static void prepare_in_worker(void *unused)
{
	int error;

	mutex_lock(&spile_session.lock);
	error = spile_call_or(0, spile_follow_begin);
	if (error)
		spile_session_emit(SPILE_RECORD_WARN,
				   "descendants of the session's process cannot be followed (rc %d)",
				   error);
	error = spile_call_or(0, spile_begun_prepare);
	if (error)
		spile_session_emit(SPILE_RECORD_WARN,
				   "processes that run already are not seen (rc %d)", error);
	mutex_unlock(&spile_session.lock);
}

void spile_sites_prepare(void)
{
	unsigned int i;

	/* By the calling process: what it runs, and files as it sees them. */
	spile_call_if_there(spile_begun_by_loader);
	spile_call_if_there(spile_programs_open);
	for (i = 0; i < SPILE_FAMILY_COUNT; i++)
		if (spile_families[i] && spile_families[i]->prepare)
			spile_families[i]->prepare();
	spile_session_in_worker(prepare_in_worker, NULL);
}

/*
 * Cheap sites first: then the number of expensive ones is known, and the filter of ftrace is
 * changed once.
 */
void spile_sites_arm(int target)
{
	unsigned int left = 0, count = 0;

	WRITE_ONCE(spile_session.arming, true);
	arm_each(target, arm_cheap_ones, &left);
	arm_each(target, gather_others, &count);
	arm_others(count, left);
	spile_families_commit();
	arm_each(target, arm_last_ones, NULL);
	spile_arming_is_over();
	WRITE_ONCE(spile_session.arming, false);
}

/* Of the batch, all of one family. */
static void note_mechanisms(const struct spile_family *family, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		batch[i]->mechanism = family->mechanism ? family->mechanism(batch[i]) : family->by;
}

/* Disarms the batch, sites of one family. */
static void disarm_batch(const struct spile_family *family, unsigned int count)
{
	unsigned int i;

	family->disarm(batch, count);
	for (i = 0; i < count; i++) {
		batch[i]->armed = false;
		batch[i]->off = false;
	}
	WRITE_ONCE(spile_session.disarmed, 0);
	WRITE_ONCE(spile_session.armed, spile_session.armed - count);
}

static unsigned int gather_armed(const struct spile_family *family, int target)
{
	unsigned int count = 0, i;

	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_site *site = &spile_sites[i];

		if (!site->armed || site->family != family)
			continue;
		if (target == SPILE_ALL_TARGETS || site->probe->target == target)
			batch[count++] = site;
	}
	return count;
}

/* Of `count` sites in the batch, leaves out those that cannot be detached now. */
static unsigned int detach_batch(const struct spile_family *family, unsigned int count)
{
	unsigned int detached = 0, i;

	if (!family->detach)
		return count;
	for (i = 0; i < count; i++) {
		if (family->detach(batch[i]))
			batch[detached++] = batch[i];
		cond_resched();
	}
	return detached;
}

/* Whether some could not be detached, and stay armed. */
static bool disarm_family(const struct spile_family *family, int target)
{
	unsigned int count = gather_armed(family, target), detached;

	note_mechanisms(family, count);
	detached = detach_batch(family, count);
	if (detached)
		disarm_batch(family, detached);
	return detached < count;
}

void spile_sites_disarmed(unsigned int count)
{
	WRITE_ONCE(spile_session.disarmed, spile_session.disarmed + count);
}

u32 spile_sites_armed(void)
{
	bool is_over = READ_ONCE(spile_session_state) > SPILE_STATE_RUNNING;
	u32 least = is_over && READ_ONCE(spile_session.at_work);
	u32 armed = READ_ONCE(spile_session.armed);

	return max(least, armed - min(armed, READ_ONCE(spile_session.disarmed)));
}

static unsigned int count_registered(const struct spile_family *family)
{
	unsigned int count = 0, i;

	for (i = 0; i < spile_script.probe_count; i++)
		count += spile_sites[i].family == family && spile_sites[i].registered;
	return count;
}

bool spile_sites_disarm_most(unsigned int most, unsigned int most_entries)
{
	bool many_entries = spile_entry_served() > most_entries, left = false;
	unsigned int i;

	WRITE_ONCE(spile_session.arming, true);
	for (i = 0; i < SPILE_FAMILY_COUNT; i++) {
		if (!spile_families[i])
			continue;
		if (count_registered(spile_families[i]) > most ||
		    (many_entries && spile_families[i]->arm_cheaply)) {
			left = true;
			/* The first steps of disarming end ftrace's part. */
			note_mechanisms(spile_families[i],
					gather_armed(spile_families[i], SPILE_ALL_TARGETS));
		} else {
			left |= disarm_family(spile_families[i], SPILE_ALL_TARGETS);
		}
	}
	WRITE_ONCE(spile_session.arming, false);
	return left;
}

bool spile_sites_disarm(int target)
{
	bool left = false;
	unsigned int i;

	WRITE_ONCE(spile_session.arming, true);
	for (i = 0; i < SPILE_FAMILY_COUNT; i++)
		if (spile_families[i])
			left |= disarm_family(spile_families[i], target);
	WRITE_ONCE(spile_session.arming, false);
	return left;
}

static unsigned int gather_registered(const struct spile_family *family, unsigned int most)
{
	unsigned int count = 0, i;

	for (i = 0; i < spile_script.probe_count && count < most; i++)
		if (spile_sites[i].armed && spile_sites[i].family == family &&
		    spile_sites[i].registered)
			batch[count++] = &spile_sites[i];
	return count;
}

/* Sites in each step of disarming, and addresses that ftrace serves. */
static struct spile_steps disarming_steps = { .size = 64, .least = 64 };
static struct spile_steps entry_steps = SPILE_ENTRY_STEPS;

enum spile_disarming spile_sites_disarm_some(void)
{
	const struct spile_family *family;
	unsigned int i, most, count, armed;
	bool is_done, held = false;

	WRITE_ONCE(spile_session.arming, true);
	is_done = spile_entry_remove_some(&entry_steps);
	for (i = 0; i < SPILE_FAMILY_COUNT && !is_done; i++) {
		family = spile_families[i];
		if (!family)
			continue;
		most = spile_step_begins(&disarming_steps, MOST_IN_STEP);
		count = gather_registered(family, most);
		if (!count) {
			armed = gather_armed(family, SPILE_ALL_TARGETS);
			count = detach_batch(family, armed);
			held |= count < armed;
		}
		if (!count)
			continue;
		disarm_batch(family, count);
		if (count == most)
			spile_step_ends(&disarming_steps, count);
		is_done = true;
	}
	WRITE_ONCE(spile_session.arming, false);
	if (is_done)
		return SPILE_DISARMED_SOME;
	return held ? SPILE_DISARMING_HELD : SPILE_DISARMED_ALL;
}

void spile_sites_in_order(enum spile_probe_kind kind, void (*run)(struct spile_site *site))
{
	unsigned int i;

	for (i = 0; i < ordered; i++)
		if (in_order[i]->probe->kind == kind)
			run(in_order[i]);
}

void spile_site_counters(const struct spile_site *site, struct spile_counters *counters,
			 bool settled)
{
	const struct spile_family *family = site->family;
	int i;

	memset(counters, 0, sizeof(*counters));
	counters->probe = site->index;
	counters->armed = site->armed && !site->switched_off;
	counters->cost = site->probe->cost;
	for_each_possible_cpu(i) {
		const struct spile_counts *counts = &per_cpu(spile_cpus, i)->counts[site->index];

		counters->handled += local_read(&counts->handled);
		counters->filtered += local_read(&counts->filtered);
		counters->nested += local_read(&counts->nested);
		counters->lock_skipped += local_read(&counts->lock_skipped);
		counters->low_stack += local_read(&counts->low_stack);
		counters->stopped += local_read(&counts->stopped);
		counters->errors += local_read(&counts->errors);
		counters->lost_records += local_read(&counts->lost);
		counters->sampled += local_read(&counts->sampled);
		if (!counts->timed)
			continue;
		counters->least_cycles = counters->timed ?
						 min(counters->least_cycles, counts->least_cycles) :
						 counts->least_cycles;
		counters->most_cycles = max(counters->most_cycles, counts->most_cycles);
		counters->cycles += counts->cycles;
		counters->timed += counts->timed;
	}
	counters->nested += site->missed;
	counters->return_misses += site->return_missed;
	counters->faulted_in = site->faulted_in;
	if (settled && site->armed && family->missed)
		family->missed(site, counters);
	if (settled && site->armed && !spile_session.disarms_later)
		counters->mechanism = family->mechanism ? family->mechanism(site) : family->by;
	else
		counters->mechanism = site->mechanism;
	counters->hits = counters->handled + counters->filtered + counters->nested +
			 counters->lock_skipped + counters->low_stack + counters->stopped +
			 counters->sampled + counters->return_misses;
}

unsigned int spile_sites_skipped(void)
{
	bool settled = !READ_ONCE(spile_session.arming);
	struct spile_counters counters = {};
	unsigned int skipped = 0, i;
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct spile_counts *counts = per_cpu(spile_cpus, cpu)->counts;

		for (i = 0; i < spile_script.probe_count; i++)
			skipped += local_read(&counts[i].nested) +
				   local_read(&counts[i].lock_skipped) +
				   local_read(&counts[i].low_stack);
	}
	for (i = 0; i < spile_script.probe_count; i++) {
		const struct spile_site *site = &spile_sites[i];

		skipped += site->missed;
		if (settled && site->armed && site->family->missed)
			site->family->missed(site, &counters);
	}
	return skipped + counters.nested;
}

static int compare_order(const void *a, const void *b)
{
	const struct spile_site *one = *(struct spile_site *const *)a;
	const struct spile_site *two = *(struct spile_site *const *)b;

	if (one->probe->kind != two->probe->kind)
		return one->probe->kind < two->probe->kind ? -1 : 1;
	if (one->probe->order != two->probe->order)
		return one->probe->order < two->probe->order ? -1 : 1;
	return one->index < two->index ? -1 : one->index > two->index;
}

static int make_site(struct spile_site *site, unsigned int index)
{
	const struct spile_probe *probe = &spile_script.probes[index];

	site->probe = probe;
	site->family = spile_family_of(probe->kind);
	site->runs = site->family ? site->family->runs : SPILE_RUNS_WHOLE;
	site->index = index;
	/* Elsewhere adding to a counter is more than one instruction. */
	if (IS_ENABLED(CONFIG_X86_64) && probe->counts_only && site->runs == SPILE_RUNS_WHOLE)
		site->counting = probe->handler;
	if (site->counting && probe->adds_to) {
		site->runs = SPILE_RUNS_ADDING;
		site->counter_at = spile_counters_at() + (probe->adds_to - 1) * sizeof(spile_long);
		site->addend = probe->addend;
	} else if (site->counting) {
		site->runs = probe->registers ? SPILE_RUNS_COUNTING_BY : SPILE_RUNS_COUNTING;
	} else if (probe->simple && site->runs == SPILE_RUNS_WHOLE) {
		site->runs = SPILE_RUNS_SIMPLE;
	}
	site->counts_at = SPILE_COUNTS_AT + index * sizeof(struct spile_counts);
	spile_stack_need(site);
	if (probe->target >= (int)spile_script.target_count)
		return -EINVAL;
	if (probe->symbol) {
		if (probe->target < 0)
			site->symbol = kstrdup(probe->symbol, GFP_KERNEL);
		else
			site->symbol = kasprintf(GFP_KERNEL, "%s:%s",
						 spile_script.targets[probe->target].name,
						 probe->symbol);
		if (!site->symbol)
			return -ENOMEM;
	}
	return 0;
}

int spile_sites_init(void)
{
	unsigned int count = spile_script.probe_count;
	unsigned int i;
	int error = -ENOMEM;

	spile_sites = kvcalloc(max(count, 1u), sizeof(*spile_sites), GFP_KERNEL);
	in_order = kvcalloc(max(count, 1u), sizeof(*in_order), GFP_KERNEL);
	batch = kvcalloc(max(count, 1u), sizeof(*batch), GFP_KERNEL);
	spile_sites_room = kvcalloc(max(count, 2u), sizeof(*spile_sites_room), GFP_KERNEL);
	if (!spile_sites || !in_order || !batch || !spile_sites_room)
		goto err;
	spile_session_charge(count * (sizeof(*spile_sites) + sizeof(*in_order) + sizeof(*batch) +
				      sizeof(*spile_sites_room)));

	for (i = 0; i < count; i++) {
		error = make_site(&spile_sites[i], i);
		if (error)
			goto err;
		/* Other kinds have a different member of the union in place of their order. */
		if (spile_sites[i].probe->kind <= SPILE_PROBE_ERROR)
			in_order[ordered++] = &spile_sites[i];
	}
	sort(in_order, ordered, sizeof(*in_order), compare_order, NULL);
	return 0;
err:
	spile_sites_exit();
	return error;
}

void spile_sites_exit(void)
{
	unsigned int i;

	for (i = 0; spile_sites && i < spile_script.probe_count; i++)
		kfree(spile_sites[i].symbol);
	kvfree(spile_sites_room);
	kvfree(batch);
	kvfree(in_order);
	kvfree(spile_sites);
	spile_sites = NULL;
}
