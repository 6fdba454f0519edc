// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builtins that read clocks. All of them are NMI-safe, so a probe inside the kernel's
 * timekeeping cannot deadlock.
 */
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched/clock.h>
#include <linux/time64.h>
#include <linux/timex.h>

#include "script.h"
#include "builtins.h"
#include "guard.h"

spile_long spile_fn_gettimeofday_ns(struct spile_context *c)
{
	return ktime_get_real_fast_ns();
}

spile_long spile_fn_gettimeofday_us(struct spile_context *c)
{
	return div_u64(ktime_get_real_fast_ns(), NSEC_PER_USEC);
}

spile_long spile_fn_gettimeofday_ms(struct spile_context *c)
{
	return div_u64(ktime_get_real_fast_ns(), NSEC_PER_MSEC);
}

spile_long spile_fn_gettimeofday_s(struct spile_context *c)
{
	return div_u64(ktime_get_real_fast_ns(), NSEC_PER_SEC);
}

spile_long spile_fn_ktime_get_ns(struct spile_context *c)
{
	return ktime_get_mono_fast_ns();
}

spile_long spile_fn_get_cycles(struct spile_context *c)
{
	return get_cycles();
}

spile_long spile_fn_jiffies(struct spile_context *c)
{
	return jiffies_64;
}

spile_long spile_fn_HZ(struct spile_context *c)
{
	return HZ;
}

/*
 * The scheduler's clock. That of another CPU is not available (cpu_clock() is not
 * exported); if clocks are stable all CPUs have the same.
 */
spile_long spile_fn_local_clock_ns(struct spile_context *c)
{
	return sched_clock();
}

spile_long spile_fn_local_clock_us(struct spile_context *c)
{
	return div_u64(sched_clock(), NSEC_PER_USEC);
}

spile_long spile_fn_local_clock_ms(struct spile_context *c)
{
	return div_u64(sched_clock(), NSEC_PER_MSEC);
}

spile_long spile_fn_local_clock_s(struct spile_context *c)
{
	return div_u64(sched_clock(), NSEC_PER_SEC);
}

spile_long spile_fn_cpu_clock_ns(struct spile_context *c, spile_long cpu)
{
	return spile_fn_local_clock_ns(c);
}

spile_long spile_fn_cpu_clock_us(struct spile_context *c, spile_long cpu)
{
	return spile_fn_local_clock_us(c);
}

spile_long spile_fn_cpu_clock_ms(struct spile_context *c, spile_long cpu)
{
	return spile_fn_local_clock_ms(c);
}

spile_long spile_fn_cpu_clock_s(struct spile_context *c, spile_long cpu)
{
	return spile_fn_local_clock_s(c);
}

unsigned int spile_fn_ctime(struct spile_context *c, spile_long seconds, char *out)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const spile_long longest = 253402300799;	/* the last second of 9999 */
	struct tm time;

	out[0] = 0;
	if (seconds < INT_MIN || seconds > longest) {
		spile_fail_text(c, "ctime(): %lld seconds are %s", seconds,
				seconds < 0 ? "a long, long time ago..." :
					      "far far in the future...");
		return 0;
	}
	time64_to_tm(seconds, 0, &time);
	return scnprintf(out, spile_script.string_bytes, "%.3s %.3s %2d %.2d:%.2d:%.2d %4ld",
			 days + 3 * time.tm_wday, months + 3 * time.tm_mon, time.tm_mday,
			 time.tm_hour, time.tm_min, time.tm_sec, 1900 + time.tm_year);
}
