// SPDX-License-Identifier: GPL-2.0-or-later

//! Scripts for `cargo xtask smp`. The load calls getsid(X) with X from 0 to 63 on both CPUs.

/// A script, and what it tests.
pub struct Script {
    /// Name of the module.
    pub name: &'static str,
    /// The globals, for docs/smp-runs.md.
    pub tries: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The loader is stopped twice while there is load: its handlers print nothing.
    pub loader_stops: bool,
}

/// A script of `$probes` that write arrays in pairs (`from[k] + to[k]` is 0) and strings made of their keys. A timer
/// sums the arrays up, sorts and deletes them; the rest is summed up at the end.
macro_rules! pairs {
    ($name:literal, $probes:literal) => {
        concat!(
            "\nglobal from, to, name, count, sum, torn, listed\n",
            $probes,
            r#"probe timer.ms(20) {
	foreach (k in from) total += from[k] + to[k]
	before = 0
	foreach (k+ in to limit 70) { count += to[k] / (k + 1); sum += to[k] / (k + 1) * k; if (k < before) torn++; before = k }
	delete to
	delete from
	foreach (k in name) if (name[k] != sprintf("%d=%d", k, 7 * k)) torn++
	if (total) torn++
	listed++
}
probe end {
	foreach (k in to) { if (from[k] + to[k]) torn++; count += to[k] / (k + 1); sum += to[k] / (k + 1) * k }
	printf(""#,
            $name,
            r#" %d %d %d\n", count, sum, torn + !listed)
}
"#
        )
    };
}

/// Each prints `NAME COUNT SUM WRONG` for some of its globals: of all calls, of their arguments, and 0.
pub const SCRIPTS: [Script; 8] = [
    Script {
        name: "globals",
        tries: "numbers, a number read by another handler, two numbers that belong together, counted arrays, aggregates, arrays of aggregates",
        text: r#"
global n, sum, a, b, s, by, x, y, torn
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	n++
	sum += k
	a[k]++
	s <<< k
	by[execname(), k % 4] <<< k
	b[tid()] += k
	x += k
	y += 3 * k
	if (y != 3 * x) torn++
}
probe end {
	printf("numbers %d %d %d\n", n, sum, torn + x - sum)
	foreach (k in a) { count += a[k]; keys += k * a[k] }
	printf("array %d %d 0\n", count, keys)
	foreach (t in b) threads += b[t]
	printf("array-of-threads %d %d 0\n", n, threads)
	printf("aggregate %d %d %d\n", @count(s), @sum(s), @min(s) + 63 - @max(s))
	foreach ([e, k] in by) { fed += @count(by[e, k]); total += @sum(by[e, k]) }
	printf("aggregates %d %d 0\n", fed, total)
}
"#,
        loader_stops: true,
    },
    Script {
        name: "latency",
        tries: "an array with stripes, made and deleted by entry and return; values of the entry",
        text: r#"
global start, lost, latency, arguments, returned
probe kernel.function("__x64_sys_getsid") { t = tid(); start[t] = gettimeofday_ns(); arguments <<< $regs->di }
probe kernel.function("__x64_sys_getsid").return {
	returned <<< @entry($regs->di)
	if (tid() in start) { latency <<< gettimeofday_ns() - start[tid()]; delete start[tid()] } else lost++
}
probe end {
	foreach (t in start) left++
	printf("start-and-stop %d %d %d\n", @count(latency), @sum(arguments), lost + left)
	printf("returns %d %d 0\n", @count(returned), @sum(returned))
}
"#,
        loader_stops: false,
    },
    Script {
        name: "readers",
        tries: "an array and an aggregate that handlers change, iterate over, read and delete",
        text: r#"
global a, s, seen, sum, torn, listed
probe kernel.function("__x64_sys_getsid") { a[$regs->di]++; a[-1 - $regs->di]--; s <<< $regs->di }
probe kernel.function("__x64_sys_getsid").return {
	if (@entry($regs->di) == 7) { total = 0; foreach (k in a) total += a[k]; if (total) torn++; listed++ }
	if (@entry($regs->di) == 9) { seen += @count(s); sum += @sum(s); delete s }
}
probe end {
	foreach (k in a) if (k >= 0) { count += a[k]; keys += a[k] * k } else { down -= a[k] }
	printf("array %d %d %d\n", count, keys, torn + count - down + !listed)
	printf("aggregate %d %d 0\n", seen + @count(s), sum + @sum(s))
}
"#,
        loader_stops: false,
    },
    Script {
        name: "whole",
        tries: "strings, arrays that wrap and are used in any way, are full, sorted, limited, deleted by slices; several elements of two keys",
        text: r#"
global n, sum, name, same, ring%[8], two, full[4], refused, made, torn, sorted
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	n++
	sum += k
	name = sprintf("%d of %s", k, execname())
	same = name
	ring[k] = 7 * k
	two[k % 8, "up"] += k + 1
	two[k % 5, "down"] -= k + 1
	try { full[k % 6] = k; made++ } catch { refused++ }
}
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	if (name != same) torn++
	if (k == 7) {
		total = 0
		foreach ([a, b] in two) total += two[a, b]
		before = -1
		count = 0
		foreach (r+ in ring limit 20) { if (r <= before || ring[r] != 7 * r) torn++; before = r; count++ }
		if (total || count > 8) torn++
		foreach (value- = r in full limit 2) { if (value % 6 != r) torn++ }
		sorted++
	}
	if (k == 11) delete two[*, "none"]
	if (k == 13) { delete full[1]; delete full }
	if (k == 15) { delete ring[15]; if (15 in ring) torn++ }
}
probe end {
	foreach ([a, b] in two) { rest += two[a, b]; if (b == "up") up += two[a, b] }
	printf("whole %d %d %d\n", n, sum, torn + rest + (made + refused != n) + !sorted + !refused)
	printf("elements-of-two-keys %d %d 0\n", n, up - n)
}
"#,
        loader_stops: true,
    },
    Script {
        name: "stripes",
        tries: "arrays with stripes of numbers and strings, three in a handler, keys in locals, iterated over, sorted and deleted by timers",
        text: pairs!(
            "stripes",
            r#"probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	from[k] = from[k] - k - 1
	to[k] = to[k] + k + 1
	if (k in name && name[k] != sprintf("%d=%d", k, 7 * k)) torn++
	name[k] = sprintf("%d=%d", k, 7 * k)
}
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	if (from[k] + to[k]) torn++
	if (k in name && name[k] != sprintf("%d=%d", k, 7 * k)) torn++
	delete name[k]
}
"#
        ),
        loader_stops: true,
    },
    Script {
        name: "timers",
        tries: "arrays of numbers and strings with stripes, by keys read from memory, three in a handler, iterated over, sorted and deleted by timers",
        text: pairs!(
            "timers",
            r#"probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	from[k] = from[k] - k - 1
	to[k] = to[k] + k + 1
	if (k in name && name[k] != sprintf("%d=%d", k, 7 * k)) torn++
	name[k] = sprintf("%d=%d", k, 7 * k)
}
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	if (from[k] + to[k]) torn++
	if (k in name && name[k] != sprintf("%d=%d", k, 7 * k)) torn++
	if (k == 5) delete name[k]
}
"#
        ),
        loader_stops: true,
    },
    Script {
        name: "aggregates",
        tries: "aggregates of several keys with histograms, and counted arrays; iterated over and deleted by handlers and timers, and by a clock of each CPU",
        text: r#"
global by, log, count, sum, counted, taken, keys, torn, listed, ticks
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	by[k % 4, execname()] <<< k
	log[k & 7] <<< k
	counted[k]++
}
probe kernel.function("__x64_sys_getsid").return {
	if (@entry($regs->di) != 5) next
	foreach ([m, e] in by @sum- limit 3) if (@min(by[m, e]) % 4 != m || @max(by[m, e]) > 63) torn++
	foreach ([m, e] in by) { count += @count(by[m, e]); sum += @sum(by[m, e]) }
	delete by
}
probe perf.sw.cpu_clock.sample(1000000) { ticks[cpu()]++; log[100 + cpu()] <<< 1 }
probe timer.ms(20) {
	foreach (k in counted) { taken += counted[k]; keys += k * counted[k] }
	delete counted
	foreach (k in log) { inside = 0; foreach (b in @hist_log(log[k])) inside += @hist_log(log[k])[b]; if (inside != @count(log[k])) torn++ }
	listed++
}
probe end {
	foreach ([m, e] in by) { count += @count(by[m, e]); sum += @sum(by[m, e]) }
	foreach (k in counted) { taken += counted[k]; keys += k * counted[k] }
	foreach (k in log) if (k < 8) { logs += @count(log[k]); log_sum += @sum(log[k]) } else clock += @count(log[k])
	foreach (c in ticks) clock -= ticks[c]
	printf("aggregates %d %d %d\n", count, sum, torn + !listed)
	printf("histograms %d %d %d\n", logs, log_sum, clock)
	printf("counted-and-deleted %d %d 0\n", taken, keys)
}
"#,
        loader_stops: true,
    },
    Script {
        name: "records",
        tries: "records of printf",
        text: r#"
probe kernel.function("__x64_sys_getsid") { printf("%d\n", $regs->di) }
"#,
        loader_stops: false,
    },
];
