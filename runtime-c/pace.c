// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long arming kprobes takes. The kernel registers them one after the other: it
 * looks for each in all its jump labels, and decodes the function around it. For each
 * instruction it looks up kprobes, in a table of 64 lists (kernel/kprobes.c,
 * kprobe_table): the more there are, the longer the next one takes. Enabling them comes
 * after that.
 *
 * In a large module A is by far the most: a loop of register_kprobe() alone takes 45 to 66
 * million instructions for a kprobe at an inlined copy in xfs, 286 million at most (6.1,
 * averages of 100, which do not grow over the first 400); unregistering one alone, 0.6 million.
 *
 * So the cost of the k-th is taken as A + B * k. B is seen when an eighth of them is
 * registered; before, it is a share of A.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/timekeeping.h>

#include "arming.h"
#include "script.h"
#include "session.h"

enum {
	/* this many kprobes, or those of a second, predict the time of the others */
	PACE_SITES = 200,
	LONG_SECONDS = 5,		/* arming that takes longer is announced */
	SEEN_PART = 8,			/* B is seen in this part of them */
	/* B of A: 1/37,000 in functions of 30 instructions, 1/7,000 in fs/ext4 (6.1) */
	USUAL_GROWTH = 16384,
	MOST_GROWTH = 2048,
};

static struct {
	unsigned int sites;		/* to be registered */
	unsigned int count;		/* and their places: kprobes */
	unsigned int done;
	u64 began;			/* ns */
	u64 last;			/* ns: when `done` of them were */
	/* when 2^i of them were, ns after `began` */
	u64 at[BITS_PER_TYPE(unsigned int)];
	u64 enabling;			/* ns of one, when measured; 0: not yet */
	unsigned int enabling_at;	/* `done` at that time */
	bool reported;
	unsigned int to_enable;		/* in all; 0: they are still being registered */
	unsigned int enabled;
	u64 enabling_began;
} pace;

/* What the k-th takes: base + growth * k, ns. */
struct kprobe_cost {
	u64 base;
	u64 growth;
};

static struct kprobe_cost registering_cost(unsigned int done, u64 elapsed)
{
	struct kprobe_cost cost = { .base = div_u64(elapsed, done) };
	unsigned int half;
	u64 first, second, growth;

	if (done < PACE_SITES || done < pace.count / SEEN_PART) {
		cost.growth = div_u64(cost.base, USUAL_GROWTH);
		return cost;
	}
	/* The averages of two parts are the costs of those in their middles. */
	half = ilog2(done) - 1;
	first = div_u64(READ_ONCE(pace.at[half]), 1u << half);
	second = div_u64(elapsed - READ_ONCE(pace.at[half]), done - (1u << half));
	growth = second > first ? div_u64((second - first) * 2, done) : 0;
	cost.growth = min(growth, div_u64(cost.base, MOST_GROWTH));
	/* Keep the average of the measurements. */
	cost.base -= min(cost.base, cost.growth * (done / 2));
	return cost;
}

static u64 kprobe_cost_of(const struct kprobe_cost *cost, unsigned int number)
{
	return cost->base + cost->growth * number;
}

/* Until all are enabled, ns. */
static u64 time_left(unsigned int done, u64 elapsed)
{
	struct kprobe_cost cost = registering_cost(done, elapsed);
	unsigned int rest = pace.count - min(done, pace.count);
	u64 registering = rest * kprobe_cost_of(&cost, done + rest / 2);
	/* It looks up kprobes, too. */
	u64 then = kprobe_cost_of(&cost, pace.enabling_at) ?: 1;
	u64 enabling = div64_u64(pace.enabling * kprobe_cost_of(&cost, pace.count), then);

	return registering + enabling * pace.count;
}

void spile_arming_begins(unsigned int sites, unsigned int places)
{
	memset(&pace, 0, sizeof(pace));
	pace.began = ktime_get_mono_fast_ns();
	pace.sites = sites;
	WRITE_ONCE(pace.count, places);
}

static void announce_pace(u64 elapsed)
{
	u64 all = elapsed + time_left(pace.done, elapsed);
	u64 seconds = div_u64(all, NSEC_PER_SEC);

	if (seconds < LONG_SECONDS || spile_arming_ended())
		return;
	spile_session_emit(
		SPILE_RECORD_WARN,
		"%u of %u probes are not served by ftrace and become kprobes one by one, at %u addresses: the kernel takes %llu us for each, about %llu s for all; interrupt (^C) to end it",
		pace.sites, spile_script.probe_count, pace.count,
		div_u64(div_u64(all, max(pace.count, pace.done)), NSEC_PER_USEC), seconds);
}

void spile_arming_registered(u64 (*enabling)(void))
{
	u64 elapsed = ktime_get_mono_fast_ns() - pace.began;
	unsigned int done = pace.done + 1;

	if (is_power_of_2(done))
		WRITE_ONCE(pace.at[ilog2(done)], elapsed);
	WRITE_ONCE(pace.last, elapsed);
	WRITE_ONCE(pace.done, done);
	if (done < PACE_SITES && elapsed < NSEC_PER_SEC)
		return;
	if (!pace.reported || (is_power_of_2(done) && done >= PACE_SITES)) {
		pace.enabling_at = done;
		WRITE_ONCE(pace.enabling, enabling());
	}
	if (!pace.reported)
		announce_pace(elapsed);
	pace.reported = true;
}

void spile_arming_enables(unsigned int count)
{
	pace.enabling_began = ktime_get_mono_fast_ns();
	WRITE_ONCE(pace.enabled, 0);
	WRITE_ONCE(pace.to_enable, count);
}

void spile_arming_enabled(void)
{
	WRITE_ONCE(pace.enabled, pace.enabled + 1);
}

void spile_arming_is_over(void)
{
	WRITE_ONCE(pace.count, 0);
	WRITE_ONCE(pace.to_enable, 0);
}

/* A reader may see two values that do not belong together: an estimate that is off once. */
void spile_arming_state(struct spile_arming *state)
{
	unsigned int to_enable = READ_ONCE(pace.to_enable), enabled = READ_ONCE(pace.enabled);
	unsigned int done = READ_ONCE(pace.done);
	u64 ns = 0;

	memset(state, 0, sizeof(*state));
	if (to_enable && enabled && enabled <= to_enable) {
		ns = ktime_get_mono_fast_ns() - READ_ONCE(pace.enabling_began);
		ns = div_u64(ns, enabled) * (to_enable - enabled);
	} else if (to_enable) {
		ns = READ_ONCE(pace.enabling) * to_enable;
	} else if (done && done <= READ_ONCE(pace.count) && READ_ONCE(pace.enabling)) {
		ns = time_left(done, READ_ONCE(pace.last));
	}
	state->to_enable = to_enable;
	state->enabled = min(enabled, to_enable);
	state->left = div_u64(ns, NSEC_PER_MSEC);
}
