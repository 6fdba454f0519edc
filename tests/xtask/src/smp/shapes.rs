// SPDX-License-Identifier: GPL-2.0-or-later

//! More scripts for `cargo xtask smp`: shapes of handlers that take several locks, by different ways and in different
//! orders, and other activity meanwhile. In the form of scripts.rs.

use super::scripts::{SCRIPTS, Script};

/// A script, and how it is run.
pub struct Shape {
    /// The script.
    pub script: Script,
    /// An option of spile.
    pub option: Option<&'static str>,
    /// A shell command that is repeated while there is load; its output is dropped.
    pub meanwhile: Option<&'static str>,
}

/// All scripts: those of scripts.rs, then these.
pub fn all() -> impl Iterator<Item = Shape> {
    SCRIPTS.into_iter().map(plain).chain(SHAPES)
}

/// Two CPUs add to the same word without any order: whether a kernel that looks for data races finds one in a module.
pub const RACE: Shape = Shape {
    script: Script {
        name: "race",
        tries: "",
        text: r#"
%{ static unsigned long raced; %}
function race() %{ raced++; %}
global n, sum
probe kernel.function("__x64_sys_getsid") { race(); n++; sum += $regs->di }
probe end { printf("numbers %d %d 0\n", n, sum) }
"#,
        loader_stops: false,
    },
    option: Some("-g"),
    meanwhile: None,
};

const fn plain(script: Script) -> Shape {
    Shape { script, option: None, meanwhile: None }
}

const SHAPES: [Shape; 16] = [
    plain(Script {
        name: "functions",
        tries: "two arrays with stripes, changed by nested functions in opposite orders",
        text: r#"
global p, q, torn, at
function forward(k, d) { p[k] = p[k] + d; q[k] = q[k] - d; return p[k] }
function backward(k, d) { q[k] = q[k] + d; p[k] = p[k] - d }
function both(k) { m = forward(k, 5); backward(k, 4); return m }
probe kernel.function("__x64_sys_getsid") { k = $regs->di; if (both(k) < 5) torn++ }
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	backward(k, 7)
	if (q[k] + p[k]) torn++
	forward(k, 7)
	at[k] = p[k]
}
probe timer.ms(10) { foreach (k in p) if (p[k] + q[k] || at[k] > p[k]) torn++ }
probe end {
	foreach (k in p) { count += p[k]; sum += k * p[k]; if (p[k] + q[k]) torn++ }
	printf("functions %d %d %d\n", count, sum, torn)
}
"#,
        loader_stops: false,
    }),
    plain(Script {
        name: "direct",
        tries: "arrays with stripes whose keys are read from memory, without locals; three in a handler",
        text: r#"
global a, b, c, torn
probe kernel.function("__x64_sys_getsid") {
	a[$regs->di] = a[$regs->di] + 1
	b[$regs->di, "x"] = a[$regs->di]
	if ($regs->di in c && c[$regs->di] > b[$regs->di, "x"]) torn++
	c[$regs->di] = a[$regs->di]
}
probe end {
	foreach (k in a) { count += a[k]; sum += k * a[k]; if (b[k, "x"] != a[k] || c[k] != a[k]) torn++ }
	printf("direct %d %d %d\n", count, sum, torn)
}
"#,
        loader_stops: true,
    }),
    plain(Script {
        name: "recursion",
        tries: "an array and a number that a recursive function changes",
        text: r#"
global a, depth, torn
function down(k, n) { depth++; a[k]++; m = n > 1 ? down(k, n - 1) : a[k]; depth--; return m }
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	if (depth || down(k, 3) % 3 || depth) torn++
}
probe kernel.function("__x64_sys_getsid").return { if (a[@entry($regs->di)] % 3) torn++ }
probe end {
	foreach (k in a) { count += a[k] / 3; sum += k * (a[k] / 3) }
	printf("recursion %d %d %d\n", count, sum, torn)
}
"#,
        loader_stops: false,
    }),
    plain(Script {
        name: "cleaners",
        tries: "an array with stripes from which timers delete one element after the other while handlers make them",
        text: r#"
global a, gone, some, count, sum, torn, cleaned
probe kernel.function("__x64_sys_getsid") { k = $regs->di; if (k in a && !a[k]) torn++; a[k] = a[k] + 1 }
probe timer.ms(7) {
	foreach (k in a) { count += a[k]; sum += k * a[k]; gone[k] = 1 }
	foreach (k in gone) { delete a[k]; if (k in a) torn++; cleaned++ }
	delete gone
	foreach (k in a) torn++
}
probe timer.ms(11) {
	foreach (k- in a limit 5) { count += a[k]; sum += k * a[k]; some[k] = 1 }
	foreach (k in some) { delete a[k]; cleaned++ }
	delete some
}
probe end {
	foreach (k in a) { count += a[k]; sum += k * a[k] }
	printf("cleaners %d %d %d\n", count, sum, torn + !cleaned)
}
"#,
        loader_stops: true,
    }),
    plain(Script {
        name: "stacks",
        tries: "aggregates by stack, fed by two probes, read and deleted by timers",
        text: r#"
global by, count, sum, torn
probe kernel.function("__x64_sys_getsid") { by[backtrace(), cpu()] <<< $regs->di }
probe timer.ms(50) {
	foreach ([s, c] in by) { count += @count(by[s, c]); sum += @sum(by[s, c]); if (@max(by[s, c]) > 63) torn++ }
	delete by
}
probe end {
	foreach ([s, c] in by) { count += @count(by[s, c]); sum += @sum(by[s, c]) }
	printf("stacks %d %d %d\n", count, sum, torn)
}
"#,
        loader_stops: false,
    }),
    Shape {
        script: Script {
            name: "procfs",
            tries: "counted arrays, arrays with stripes and aggregates, read by files in /proc",
            text: r#"
global a, b, s, torn, read
probe kernel.function("__x64_sys_getsid") { k = $regs->di; a[k]++; b[k] = b[k] + 1; s <<< k }
probe procfs("sums").read {
	foreach (k in a) counted += a[k]
	foreach (k+ in b) made += b[k]
	if (counted != made || made != @count(s)) torn++
	read++
	$value = sprintf("%d %d %d\n", counted, made, @count(s))
}
probe end {
	foreach (k in b) { count += b[k]; sum += k * b[k]; if (a[k] != b[k]) torn++ }
	printf("procfs %d %d %d\n", count, sum, torn + !read)
}
"#,
            loader_stops: false,
        },
        option: None,
        meanwhile: Some("cat /proc/systemtap/procfs/sums; usleep 20000"),
    },
    plain(Script {
        name: "many",
        tries: "ten arrays with stripes in a handler, used in opposite orders",
        text: r#"
global a, b, c, d, e, f, g, h, i, j, torn
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	a[k] = a[k] + 1; b[k] = a[k]; c[k] = b[k]; d[k] = c[k]; e[k] = d[k]; f[k] = e[k]; g[k] = f[k]; h[k] = g[k]; i[k] = h[k]; j[k] = i[k]
}
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	if (j[k] != i[k] || i[k] != h[k] || h[k] != g[k] || g[k] != f[k] || f[k] != e[k] || e[k] != d[k] || d[k] != c[k] || c[k] != b[k] || b[k] != a[k]) torn++
	j[k] = -1; i[k] = -1; h[k] = a[k]; j[k] = a[k]; i[k] = j[k]
}
probe end {
	foreach (k in a) { count += a[k]; sum += k * a[k]; if (j[k] != a[k]) torn++ }
	printf("many %d %d %d\n", count, sum, torn)
}
"#,
        loader_stops: false,
    }),
    plain(Script {
        name: "strings",
        tries: "arrays with stripes by strings that handlers make; left early by some runs",
        text: r#"
global a, b, skipped, skipped_sum, torn
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	if (k % 8 == 3) { k = -k }
	name = sprintf("%s of %d", execname(), k)
	if (k < 0) next
	a[name] = a[name] + 1
	b[name, k] = sprintf("%d", a[name])
	if (strtol(b[name, k], 10) != a[name]) torn++
}
probe kernel.function("__x64_sys_getsid") { if ($regs->di % 8 != 3) next; skipped++; skipped_sum += $regs->di }
probe end {
	foreach ([n, k] in b) { count += a[n]; sum += k * a[n]; if (strtol(b[n, k], 10) != a[n]) torn++ }
	printf("strings %d %d %d\n", count + skipped, sum + skipped_sum, torn)
}
"#,
        loader_stops: true,
    }),
    Shape {
        script: Script {
            name: "whole_handlers",
            tries: "arrays that handlers lock as a whole because `-D WHOLE_LOCKS` asks for it",
            text: r#"
global from, to, torn, listed
probe kernel.function("__x64_sys_getsid") { k = $regs->di; from[k] = from[k] - 1; to[k] = to[k] + 1 }
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	if (from[k] + to[k]) torn++
	if (k == 5) { total = 0; foreach (i in from) total += from[i] + to[i]; if (total) torn++; listed++ }
}
probe end {
	foreach (k in to) { count += to[k]; sum += k * to[k]; if (from[k] + to[k]) torn++ }
	printf("whole_handlers %d %d %d\n", count, sum, torn + !listed)
}
"#,
            loader_stops: true,
        },
        option: Some("-DWHOLE_LOCKS"),
        meanwhile: None,
    },
    plain(Script {
        name: "long_stacks",
        tries: "stacks as keys, too long for an element: counted, in statistics, and as values",
        text: r#"
global counted, fed, last, torn, at
function long_one:string (k:long) {
	here = backtrace()
	text = sprintf("%d", k)
	while (strlen(text) < 1200) text = sprintf("%s %s", text, here)
	return text
}
probe kernel.function("__x64_sys_getsid") {
	text = long_one($regs->di)
	counted[text]++
	fed[text, 1] <<< $regs->di
	at[$regs->di] <<< 1
	last[$regs->di] = text
}
probe end {
	foreach (text in counted) {
		k = strtol(tokenize(text, " "), 10)
		count += counted[text]
		sum += k * counted[text]
		if (@count(fed[text, 1]) != counted[text] || @sum(fed[text, 1]) != k * counted[text]) torn++
		if (!(last[k] in counted) || strtol(last[k], 10) != k || strlen(text) < 1200) torn++
	}
	foreach (k in at) { count2 += @count(at[k]) }
	printf("long_stacks %d %d %d\n", count, sum, torn + (count != count2))
}
"#,
        loader_stops: true,
    }),
    plain(Script {
        name: "writers",
        tries: "numbers that belong together, read by each call and seldom written",
        text: r#"
global x, y, z, n, sum, torn, written
probe kernel.function("__x64_sys_getsid") { n++; sum += $regs->di; if (x + y != z) torn++ }
probe kernel.function("__x64_sys_getsid").return {
	if (x + y != z) torn++
	if (@entry($regs->di) == 3) { x++; y += 2; z += 3; written++ }
}
probe timer.ms(5) { x++; y -= 3; z -= 2 }
probe end { printf("writers %d %d %d\n", n, sum, torn + !written + (x + y != z)) }
"#,
        loader_stops: true,
    }),
    plain(Script {
        name: "wrapping",
        tries: "arrays with stripes that wrap: one that is always full, one that never drops anything, one by two keys that timers read and empty",
        text: r#"
global last%[8], kept%[64], pair%[100], torn, listed, dropped, again
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	if (k in last) { if (last[k] != 3 * k) torn++; again++; delete last[k] } else dropped++
	last[k] = 3 * k
	if (k in kept && kept[k] % (k + 1)) torn++
	kept[k] = kept[k] + k + 1
	pair[k, tid()] = sprintf("%d by %d", k, tid())
}
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	if (k in last && last[k] != 3 * k) torn++
	if (kept[k] < k + 1) torn++
	if ([k, tid()] in pair && pair[k, tid()] != sprintf("%d by %d", k, tid())) torn++
	if (k % 8 == 3) delete pair[k, tid()]
}
probe timer.ms(20) {
	count = 0
	foreach (k in last) { if (last[k] != 3 * k) torn++; count++ }
	if (count > 8) torn++
	count = 0
	foreach ([k, t] in pair) { if (pair[k, t] != sprintf("%d by %d", k, t)) torn++; count++ }
	if (count > 100) torn++
	if (listed++ % 4 == 0) delete pair
}
probe end {
	foreach (k in last) full++
	foreach (k+ in kept) { calls += kept[k] / (k + 1); sum += kept[k] / (k + 1) * k }
	printf("wrapping %d %d %d\n", calls, sum, torn + !listed + (full != 8) + !dropped)
	printf("dropped-or-not %d %d 0\n", dropped + again, sum)
}
"#,
        loader_stops: true,
    }),
    plain(Script {
        name: "moves",
        tries: "arrays with stripes of which handlers use two to four elements, some the same, by keys that functions compute after effects; summed up, read and emptied by timers",
        text: r#"
global amount, mark%[40], n, sum, torn, listed
function other:long (k:long) { return (k * 7 + 3) % 64 }
function reciprocal:long (k:long) { return 1000 / k }
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	n++
	sum += k
	amount[k] = amount[k] - 5
	to = other(k)
	amount[to] = amount[to] + 3
	amount[other(other(k))] = amount[other(other(k))] + 2
	mark[k] = k
	mark[to] = to
	if ((k in mark && mark[k] != k) || mark[to] != to) torn++
}
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	try { amount[64 + reciprocal(k)] = amount[64 + reciprocal(k)] + 1; if (!k) torn++ } catch { if (k) torn++ }
}
probe timer.ms(10) {
	total = 0
	foreach (k in amount) if (k < 64) total += amount[k]
	if (total) torn++
	count = 0
	foreach (k in mark) { if (mark[k] != k) torn++; count++ }
	if (count > 40) torn++
	if (listed++ % 8 == 0) { delete mark; delete amount }
}
probe end {
	foreach (k in amount) if (k < 64) total += amount[k]
	printf("moves %d %d %d\n", n, sum, torn + !listed + total)
}
"#,
        loader_stops: true,
    }),
    plain(Script {
        name: "late",
        tries: "arrays with stripes by keys that handlers know only after they have changed others: elements, numbers, locals assigned twice; one in opposite orders",
        text: r#"
global home, p, q, base = 64, r, n, sum, torn, listed
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	n[k]++
	home[k] = (k * 7 + 3) % 64
	j = home[k]
	p[j] = p[j] + 1
	q[base + home[k]] = p[j]
	r[j] = r[j] - 1
	if (p[j] + r[j]) torn[cpu()]++
	j = 0
}
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	home[k] = (k * 7 + 3) % 64
	j = home[k]
	if (k % 2) { q[base + j] = q[base + j] + 5; if (p[j] + 5 != q[base + j]) torn[cpu()]++; q[base + j] = p[j] }
	if (p[j] != -r[j]) torn[cpu()]++
}
probe timer.ms(10) {
	foreach (k in p) { if (p[k] + r[k] || q[64 + k] != p[k]) torn[cpu()]++ }
	if (listed++ % 8 == 0) delete home
	base = 64
}
probe end {
	foreach (c in torn) wrong += torn[c]
	foreach (k in n) { count += n[k]; sum += k * n[k]; moved += p[(k * 7 + 3) % 64] }
	printf("late %d %d %d\n", count, sum, wrong + !listed + (moved != count))
}
"#,
        loader_stops: true,
    }),
    plain(Script {
        name: "named",
        tries: "arrays with stripes by uid(), pp(), probefunc() and strings joined of them",
        text: r#"
global calls, by, sums, torn
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	calls[pp(), uid(), k] = calls[pp(), uid(), k] + 1
	by[probefunc() . ":" . execname(), k] = by[probefunc() . ":" . execname(), k] + 1
	name = substr(probefunc(), 0, 6) . "!"
	sums[name, cpu(), strlen(name)] = sums[name, cpu(), strlen(name)] + k
}
probe timer.ms(10) {
	foreach ([p, u, k] in calls) total += calls[p, u, k]
	foreach ([f, k] in by) total -= by[f, k]
	if (total) torn++
}
probe end {
	foreach ([p, u, k] in calls) { count += calls[p, u, k]; sum += k * calls[p, u, k]; if (u || !isinstr(p, "getsid")) torn++ }
	foreach ([f, k] in by) { more += by[f, k]; if (!isinstr(f, "getsid:")) torn++ }
	foreach ([s, c, l] in sums) { added += sums[s, c, l]; if (s != "__x64_!" || l != 7) torn++ }
	printf("named %d %d %d\n", count, sum, torn + (more != count) + (added != sum))
}
"#,
        loader_stops: true,
    }),
    plain(Script {
        name: "some_whole",
        tries: "arrays with stripes of which some handlers take all stripes, after they have changed others, and sum them up",
        text: r#"
global from, to, part, last%[8], n, torn, listed
function sum_up() { foreach (k in from) sum += from[k] + to[k]; return sum }
probe kernel.function("__x64_sys_getsid") {
	k = $regs->di
	n[k]++
	part[k] = k % 7
	j = part[k]
	from[j] = from[j] - 3
	to[j] = to[j] + 3
	last[j] = j
}
probe kernel.function("__x64_sys_getsid").return {
	k = @entry($regs->di)
	part[k] = k % 7
	j = part[k]
	if (from[j] + to[j] || (j in last && last[j] != j)) torn[cpu()]++
}
probe kernel.function("__x64_sys_getsid").return {
	if (@entry($regs->di) != 5) next
	part[5] = 5
	if (sum_up()) torn[cpu()]++
	listed[cpu()]++
}
probe end {
	foreach (c in torn) wrong += torn[c]
	foreach (c in listed) times += listed[c]
	foreach (k in n) { count += n[k]; sum += k * n[k] }
	foreach (k in to) total += to[k]
	printf("some_whole %d %d %d\n", count, sum, wrong + !times + (total != 3 * count) + sum_up())
}
"#,
        loader_stops: true,
    }),
];
