// SPDX-License-Identifier: GPL-2.0-or-later

//! Scripts for `cargo xtask threads`: for each kind of global one that changes it on all CPUs at once, and whose end probe
//! knows what must have come out. tid() is another one in each thread, pid() a random number below 64, target() the number of all hits.

/// A script with its kind of probes.
pub struct Script {
    /// Name of the script.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Armed probes; they are hit in turn.
    pub probes: u64,
    /// One of them prints the number 1 at each hit.
    pub prints: bool,
    /// Of runtime-c/tests/threads/threads.c.
    pub options: &'static [&'static str],
    /// Reported as a race by ThreadSanitizer, but resolved by generations: elements that are replaced while others read
    /// them.
    pub races_by_design: bool,
}

const SCRIPT: Script = Script { name: "", text: "", probes: 1, prints: false, options: &[], races_by_design: false };

/// All scripts.
pub const SCRIPTS: &[Script] = &[
    Script {
        name: "counter",
        text: r#"
global n
probe timer.profile { n++ }
probe end { log(n == target() ? "exact" : sprintf("%d of %d", n, target())) }
"#,
        ..SCRIPT
    },
    Script {
        name: "counter that is read",
        text: r#"
global n, least, most
probe timer.profile { n++ }
probe timer.profile { if (n < 0) least++; most = n }
probe end { log(n * 2 == target() && !least && most <= n ? "exact" : sprintf("%d of %d, %d", n, target(), least)) }
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "numbers that belong together",
        text: r#"
global a, b, torn
probe timer.profile { a += pid(); b += pid() * 3 }
probe timer.profile { if (b != a * 3) torn++; a++; b += 3 }
probe end { log(b == a * 3 && !torn ? "exact" : sprintf("%d %d, torn %d", a, b, torn)) }
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "text",
        text: r#"
global name, same, torn
probe timer.profile { name = sprintf("%d", tid() * 1000000007 + pid()); same = name }
probe timer.profile { if (name != same) torn++ }
probe end { log(torn ? sprintf("torn %d", torn) : "exact") }
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "count by thread",
        text: r#"
global a, total
probe timer.profile { a[tid()]++ }
probe end { foreach (t in a) total += a[t]; log(total == target() ? "exact" : sprintf("%d of %d", total, target())) }
"#,
        ..SCRIPT
    },
    Script {
        name: "count by key",
        text: r#"
global a, b, c, total, more, third
probe timer.profile { a[pid()]++; b[pid(), execname()] += 2; c[execname()] -= 3 }
probe end {
	foreach (k in a) total += a[k]
	foreach ([k, t] in b) more += b[k, t]
	foreach (t in c) third += c[t]
	log(total == target() && more == 2 * total && third == -3 * total ? "exact" : sprintf("%d %d %d of %d", total, more, third, target()))
}
"#,
        ..SCRIPT
    },
    Script {
        name: "count by key, used",
        text: r#"
global a, odd, total
probe timer.profile { if (a[pid()]++ % 2) odd[tid()]++ }
probe end {
	foreach (k in a) { total += a[k]; half += a[k] / 2 }
	foreach (t in odd) halves += odd[t]
	log(total == target() && half == halves ? "exact" : sprintf("%d of %d, %d %d", total, target(), half, halves))
}
"#,
        ..SCRIPT
    },
    Script {
        name: "count by key, looked at",
        text: r#"
global a, total, went_back, last
probe timer.profile { a[pid()]++ }
probe timer.profile { if (a[pid()] < last[pid()]) went_back++; last[pid()] = a[pid()] }
probe end {
	foreach (k in a) total += a[k]
	log(total * 2 == target() && !went_back ? "exact" : sprintf("%d of %d, %d went back", total, target(), went_back))
}
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "elements in functions",
        text: r#"
global p, q, torn, total
function forward(k, d) { p[k] = p[k] + d; q[k] = q[k] - d; return p[k] }
function backward(k, d) { q[k] = q[k] + d; p[k] = p[k] - d }
function both(k) { m = forward(k, 5); backward(k, 4); return m }
probe timer.profile { k = pid(); if (both(k) < 5) torn++ }
probe timer.profile { k = pid(); backward(k, 7); if (p[k] + q[k]) torn++; forward(k, 7); if (p[k] + q[k]) torn++ }
probe end {
	foreach (k in p) { total += p[k]; if (p[k] + q[k]) torn++ }
	log(total * 2 == target() && !torn ? "exact" : sprintf("%d of %d, torn %d", total, target(), torn))
}
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "strings made by handlers, ten arrays",
        text: r#"
global a, b, c, d, e, f, g, h, i, j, torn, total
probe timer.profile {
	k = sprintf("%d of %d", pid(), tid())
	if (k == "nobody") next
	a[k] = a[k] + 1; b[k] = a[k]; c[k] = b[k]; d[k] = c[k]; e[k] = d[k]; f[k] = e[k]; g[k] = f[k]; h[k] = g[k]; i[k] = h[k]; j[k] = i[k]
}
probe timer.profile { k = sprintf("%d of %d", pid(), tid()); if (j[k] != i[k] || g[k] != c[k] || b[k] != a[k] || e[k] != h[k]) torn++; j[k] = d[k]; a[k] = f[k] }
probe end {
	foreach (k in a) { total += a[k]; if (a[k] != j[k]) torn++ }
	log(total * 2 == target() && !torn ? "exact" : sprintf("%d of %d, torn %d", total, target(), torn))
}
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "start and stop by thread",
        text: r#"
global start, times, unknown
probe timer.profile { start[tid()] = gettimeofday_ns() }
probe timer.profile { if (tid() in start) { times <<< gettimeofday_ns() - start[tid()]; delete start[tid()] } else unknown++ }
probe end {
	foreach (t in start) left++
	log(@count(times) * 2 == target() && !unknown && !left && @min(times) >= 0 ? "exact" : sprintf("%d of %d, %d unknown, %d left", @count(times), target(), unknown, left))
}
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "start and stop by any key",
        text: r#"
global start, started, stopped
probe timer.profile { if (!(pid() in start)) { start[pid()] = 1; started++ } }
probe timer.profile { if (pid() in start) { delete start[pid()]; stopped++ } }
probe end {
	foreach (k in start) left++
	log(started - stopped == left ? "exact" : sprintf("%d started, %d stopped, %d left", started, stopped, left))
}
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "text by key",
        text: r#"
global name, torn
probe timer.profile { name[pid()] = sprintf("%d=%d", pid(), pid() * 1000000007) }
probe timer.profile { if (pid() in name && name[pid()] != sprintf("%d=%d", pid(), pid() * 1000000007)) torn++; if (pid() % 4 == 0) delete name[pid()] }
probe end { log(torn ? sprintf("torn %d", torn) : "exact") }
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "moved between two arrays",
        text: r#"
global from, to, torn
probe timer.profile { from[pid()]--; to[pid()]++ }
probe timer.profile { if (from[pid()] + to[pid()]) torn++ }
probe end { foreach (k in from) sum += from[k] + to[k]; log(!sum && !torn ? "exact" : sprintf("sum %d, torn %d", sum, torn)) }
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "arrays with stripes as a whole",
        text: r#"
global from, to, name, torn, listed
probe timer.profile { from[pid()] = from[pid()] - 3; to[pid()] += 3; if (pid() % 8 == 0) { delete from[pid()]; delete to[pid()] } }
probe timer.s(1) {
	if (pid() % 16) next
	foreach (k in from) sum += from[k]
	foreach (k in to) sum += to[k]
	if (sum) torn++
	listed++
}
probe timer.profile { name[execname(), pid() + 1] = pid() }
probe timer.s(2) { if (pid() % 16) next; foreach ([t, k] in name) { if (name[t, k] != k - 1) torn++ } }
probe end { foreach (k in from) total += from[k] + to[k]; log(!total && !torn && listed ? "exact" : sprintf("sum %d, torn %d, listed %d", total, torn, listed)) }
"#,
        probes: 4,
        ..SCRIPT
    },
    Script {
        name: "an array as a whole",
        text: r#"
global a, torn, total, listed
probe timer.profile { a[pid()]++; a[-pid() - 1]-- }
probe timer.profile { if (pid() == 5) { sum = 0; foreach (k- in a) { sum += a[k]; listed++ } if (sum) torn++ } }
probe end { foreach (k in a) total += a[k]; log(!total && !torn && listed ? "exact" : sprintf("sum %d, torn %d, listed %d", total, torn, listed)) }
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "a full array that wraps",
        text: r#"
global a%[8], count, wrong
probe timer.profile { a[pid()] = pid() * 7 }
probe timer.profile { if (pid() in a && a[pid()] != pid() * 7) wrong++ }
probe end { foreach (k in a) count++; log(count == 8 && !wrong ? "exact" : sprintf("%d elements, %d wrong", count, wrong)) }
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "aggregate",
        text: r#"
global s, total
probe timer.profile { s <<< pid(); total += pid() }
probe end {
	log(@count(s) == target() && @sum(s) == total && @min(s) == 0 && @max(s) == 63 ? "exact" : sprintf("%d of %d, %d %d", @count(s), target(), @sum(s), total))
}
"#,
        ..SCRIPT
    },
    Script {
        name: "aggregates by key",
        text: r#"
global a, b, c
probe timer.profile { a[pid()] <<< 1; b[execname()] <<< pid(); c[pid(), tid()] <<< 2 }
probe end {
	foreach (k in a) total += @count(a[k])
	foreach (t in b) more += @count(b[t])
	foreach ([k, thread] in c) third += @sum(c[k, thread])
	log(total == target() && more == total && third == 2 * total ? "exact" : sprintf("%d %d %d of %d", total, more, third, target()))
}
"#,
        ..SCRIPT
    },
    Script {
        name: "aggregates with histograms",
        text: r#"
global a, b
probe timer.profile { a[tid()] <<< pid(); b <<< pid() }
probe end {
	foreach (t in a) { total += @count(a[t]); foreach (bucket in @hist_linear(a[t], 0, 60, 10)) in_buckets += @hist_linear(a[t], 0, 60, 10)[bucket] }
	foreach (bucket in @hist_log(b)) logs += @hist_log(b)[bucket]
	log(total == target() && in_buckets == total && logs == total && @variance(b) > 300 && @variance(b) < 400 ? "exact" : sprintf("%d %d %d of %d", total, in_buckets, logs, target()))
}
"#,
        ..SCRIPT
    },
    Script {
        name: "aggregate that is read and deleted",
        text: r#"
global s, a, seen, key_seen
probe timer.profile { s <<< 1; a[pid()] <<< 1 }
probe timer.profile {
	if (pid() % 16 == 0) { seen += @count(s); delete s }
	if (pid() % 4 == 0 && pid() in a) { key_seen += @count(a[pid()]); delete a[pid()] }
}
probe end {
	foreach (k in a) key_seen += @count(a[k])
	seen += @count(s)
	log(seen * 2 == target() && key_seen == seen ? "exact" : sprintf("%d %d of %d", seen, key_seen, target()))
}
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "aggregates that wrap",
        text: r#"
global a%[16], count, wrong
probe timer.profile { a[pid()] <<< pid() }
probe end {
	foreach (k in a) { count++; if (@min(a[k]) != k || @max(a[k]) != k) wrong++ }
	log(count == 16 && !wrong ? "exact" : sprintf("%d elements, %d wrong", count, wrong))
}
"#,
        races_by_design: true,
        ..SCRIPT
    },
    Script {
        name: "print",
        text: r#"
probe timer.profile { printf("%d\n", 1) }
probe end { log("exact") }
"#,
        prints: true,
        ..SCRIPT
    },
    Script {
        name: "print into a small ring, and count",
        text: r#"
global a, listed
probe timer.profile { a[pid()]++; printf("%d\n", 1) }
probe timer.profile { if (pid() == 1) foreach (k in a limit 3) listed++ }
probe end { foreach (k in a) sum += a[k]; log(sum * 2 == target() && listed ? "exact" : sprintf("%d of %d, %d", sum, target(), listed)) }
"#,
        probes: 2,
        prints: true,
        options: &["-r", "65536"],
        ..SCRIPT
    },
    Script {
        name: "a locked array and what is fed",
        text: r#"
global first, latency, by, n
probe timer.profile { first[pid()] = n; n++; by[pid() % 8] <<< n }
probe timer.profile { if (pid() in first && first[pid()] < n) latency <<< n - first[pid()]; else latency <<< 0 }
probe end {
	foreach (k in by) total += @count(by[k])
	log(n * 2 == target() && total == n && @count(latency) == n ? "exact" : sprintf("%d %d %d of %d", n, total, @count(latency), target()))
}
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "keys known late",
        text: r#"
global home, p, q, r, torn, total
probe timer.profile {
	n = pid(); home[n] = (n * 7 + 3) % 64
	k = home[n]
	p[k] = p[k] + 1; q[k] = q[k] - 1
	if (p[k] + q[k]) torn[tid()]++
}
probe timer.profile {
	n = pid(); r[n] = r[n] + 1
	k = (n in home) ? home[n] : (n * 7 + 3) % 64
	if (p[k] + q[k]) torn[tid()]++
	q[k] = q[k] - 5; p[k] = p[k] + 5
	if (n % 8 == 0) { delete home[n]; k = 1 }
}
probe end {
	foreach (t in torn) wrong += torn[t]
	foreach (k in p) { total += p[k]; if (p[k] + q[k]) wrong++ }
	foreach (k in r) total += r[k] * 4
	log(total == target() * 5 && !wrong ? "exact" : sprintf("%d of %d, torn %d", total, target() * 5, wrong))
}
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "keys that are elements and numbers",
        text: r#"
global home, p, q, base = 64, name, seen, torn
probe timer.profile {
	home[pid()] = (pid() * 5 + 1) % 64
	p[home[pid()], base] = p[home[pid()], base] + 1
	q[base + home[pid()]] = p[home[pid()], base]
	if (q[base + home[pid()]] < 1) torn[tid()]++
}
probe timer.profile {
	n = (pid() * 5 + 1) % 64
	if (p[n, base] != q[base + n]) torn[tid()]++
	name[pid()] = sprintf("n%d", n)
	seen[name[pid()]] = seen[name[pid()]] + 1
}
probe timer.profile { if (pid() % 32 == 3) base = 64 }
probe end {
	foreach (t in torn) wrong += torn[t]
	foreach ([k, b] in p) { total += p[k, b]; if (q[b + k] != p[k, b]) wrong++ }
	foreach (s in seen) more += seen[s]
	log(total * 3 == target() && more == total && !wrong ? "exact" : sprintf("%d %d of %d, torn %d", total, more, target(), wrong))
}
"#,
        probes: 3,
        ..SCRIPT
    },
    Script {
        name: "arrays taken in opposite orders",
        text: r#"
global p, q, torn, total
probe timer.profile { k = pid(); p[k] = p[k] + 1; j = p[k] ? k : 0; q[j] = q[j] - 1; if (p[k] + q[k]) torn[tid()]++ }
probe timer.profile { k = pid(); q[k] = q[k] - 1; j = q[k] ? k : 0; p[j] = p[j] + 1; if (p[k] + q[k]) torn[tid()]++ }
probe end {
	foreach (t in torn) wrong += torn[t]
	foreach (k in p) { total += p[k]; if (p[k] + q[k]) wrong++ }
	log(total == target() && !wrong ? "exact" : sprintf("%d of %d, torn %d", total, target(), wrong))
}
"#,
        probes: 2,
        ..SCRIPT
    },
    Script {
        name: "all stripes of some, one of others, late",
        text: r#"
global from, to, part, torn, listed, last%[32]
function sum_up() { foreach (k in from) sum += from[k] + to[k]; return sum }
probe timer.profile { n = pid(); part[n] = n % 7; k = part[n]; from[k] = from[k] - 3; to[k] = to[k] + 3; last[k] = k }
probe timer.profile { n = pid(); part[n] = n % 7; k = part[n]; if (from[k] + to[k]) torn[tid()]++; if ((k in last) && last[k] != k) torn[tid()]++ }
probe timer.profile {
	if (pid() % 16) next
	part[1] = 1
	if (sum_up()) torn[tid()]++
	listed[tid()]++
}
probe end {
	foreach (t in torn) wrong += torn[t]
	foreach (t in listed) times += listed[t]
	foreach (k in to) total += to[k]
	log(total == target() && !sum_up() && !wrong && times ? "exact" : sprintf("%d of %d, torn %d, listed %d", total, target(), wrong, times))
}
"#,
        probes: 3,
        ..SCRIPT
    },
    Script {
        name: "a number written before an array is taken late",
        text: r#"
global stage, home, last, torn
probe timer.profile { n = pid(); stage = n; home[n] = n % 4; k = home[n]; last[k] = n }
probe timer.profile { k = pid() % 4; n = last[k]; now = stage; if (now % 4 == k && now != n) torn[tid()]++ }
probe end { foreach (t in torn) wrong += torn[t]; log(wrong ? sprintf("torn %d", wrong) : "exact") }
"#,
        probes: 2,
        ..SCRIPT
    },
];
