// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * timer.* probes: one hrtimer each, in hard interrupt context. Those that count
 * the kernel's ticks (timer.jiffies) are hrtimers too: the timer wheel would run
 * them later and is of no other use to them.
 */
#include <linux/hrtimer.h>
#include <linux/random.h>
#include <asm/irq_regs.h>

#include "context.h"
#include "family.h"
#include "features.h"
#include "session.h"
#include "site.h"

#define SHORTEST (100 * NSEC_PER_USEC)

/*
 * Time to the next run: the period, give or take up to `random` of its unit, which is not more
 * than the period. No less than the shortest period that a script can state.
 */
static ktime_t next_interval(struct spile_site *site)
{
	const struct spile_timer *period = &site->probe->timer;
	bool ticks = site->probe->kind == SPILE_PROBE_JIFFIES;
	u64 interval = period->period;

	if (period->random) {
		/* xorshift64 (Marsaglia): any context, no kernel entropy spent on each tick. */
		u64 x = site->random_state;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		site->random_state = x;
		interval += x % (2 * period->random + 1);
		interval -= period->random;
		interval = max_t(u64, interval, ticks ? 1 : SHORTEST);
	}
	return ns_to_ktime(ticks ? interval * (NSEC_PER_SEC / HZ) : interval);
}

static enum hrtimer_restart handle_tick(struct hrtimer *timer)
{
	struct spile_site *site = container_of(timer, struct spile_site, timer);
	struct pt_regs *regs = get_irq_regs();

	if (READ_ONCE(spile_session_state) > SPILE_STATE_RUNNING)
		return HRTIMER_NORESTART;
	/* The handler gets registers only if the timer interrupted the kernel. */
	if (regs && user_mode(regs))
		regs = NULL;
	spile_context_run(site, SPILE_STATE_RUNNING, (unsigned long *)regs);
	hrtimer_forward_now(timer, next_interval(site));
	return HRTIMER_RESTART;
}

static int start_timer(struct spile_site *site)
{
	get_random_bytes(&site->random_state, sizeof(site->random_state));
	site->random_state |= 1;	/* never 0, where xorshift stays */
	spile_hrtimer_setup(&site->timer, handle_tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	hrtimer_start(&site->timer, next_interval(site), HRTIMER_MODE_REL_HARD);
	return 0;
}

static void cancel_timers(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		hrtimer_cancel(&sites[i]->timer);
}

static void turn_timer(struct spile_site *site, bool on)
{
	if (on)
		hrtimer_start(&site->timer, next_interval(site), HRTIMER_MODE_REL_HARD);
	else
		hrtimer_cancel(&site->timer);
}

const struct spile_family spile_timer_family = {
	.kind = SPILE_PROBE_TIMER,
	.type = "hrtimer",
	.by = SPILE_BY_TIMER,
	.arms_last = true,
	.arm = start_timer,
	.disarm = cancel_timers,
	.turn = turn_timer,
};

const struct spile_family spile_jiffies_family = {
	.kind = SPILE_PROBE_JIFFIES,
	.type = "timer",
	.by = SPILE_BY_TIMER,
	.arms_last = true,
	.arm = start_timer,
	.disarm = cancel_timers,
	.turn = turn_timer,
};
