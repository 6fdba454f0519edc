// SPDX-License-Identifier: GPL-2.0-or-later

use super::*;

/// The script, or the messages.
fn translated(program: &str) -> String {
    let mut sources = spile_source::SourceMap::new();
    let file = sources.add("<program>", program.as_bytes().to_vec(), spile_source::Origin::User);
    match translate(file, program, &|name| (name == "libc").then(|| "/usr/lib/libc.so.6".to_string())) {
        Ok(script) => script,
        Err(problems) => {
            problems.iter().map(|problem| spile_source::diagnostic::render::render(&sources, problem, false)).collect()
        }
    }
}

#[test]
fn one_liners() {
    let programs = [
        "BEGIN { printf(\"hello world\\n\"); }",
        "tracepoint:syscalls:sys_enter_openat { printf(\"%s %s\\n\", comm, str(args.filename)); }",
        "tracepoint:raw_syscalls:sys_enter { @[comm] = count(); }",
        "tracepoint:syscalls:sys_exit_read /pid == 18644/ { @bytes = hist(args.ret); }",
        "kretprobe:vfs_read { @bytes = lhist(retval, 0, 2000, 200); }",
        "kprobe:vfs_read { @start[tid] = nsecs; }\n\
         kretprobe:vfs_read /@start[tid]/ { @ns[comm] = hist(nsecs - @start[tid]); delete(@start[tid]); }",
        "tracepoint:sched:sched* { @[probe] = count(); } interval:s:5 { exit(); }",
        "profile:hz:99 { @[kstack] = count(); }",
        "profile:hz:99 { @[ustack(5), kstack(perf, 3), comm] = count(); }",
        "kprobe:tcp_v4_connect { $sk = (struct sock *)arg0; $d = $sk->__sk_common.skc_daddr;\n\
         printf(\"%-16s %d %s\\n\", comm, $sk->__sk_common.skc_num, ntop($d)); }",
        "kfunc:vfs_open { printf(\"open path: %s\\n\", str(args->path->dentry->d_name.name)); }",
        "uprobe:/bin/bash:readline { printf(\"%d\\n\", arg0); } uretprobe:/bin/bash:readline { printf(\"%s\\n\", str(retval)); }",
        "usdt:/usr/sbin/mysqld:mysql:query__start { printf(\"%s\\n\", str(arg0)); }",
        "i:s:1 { print(@x, 5); print(@x, 5, 1000); clear(@x); time(\"%H:%M:%S  \"); } k:a,k:b { @x[func] = sum(arg2); }",
        "software:faults:1 { @[comm] = count(); } hardware:cache-misses:1000000 { @[comm, pid] = count(); }",
        "uprobe:libc:malloc, uprobe:libnone:f { @[comm] = count(); } k:vfs_*,k:ksys_read { @n[comm] = count(); }",
        "watchpoint:0xffffffff81000000:8:w { printf(\"hit\\n\"); }",
        "k:f { @a = avg(arg0); @b = min(arg0); @c = max(arg0); @d[cpu] = stats(arg0); }",
        "END { clear(@start); } k:f { @start[arg0, comm] = nsecs; @last = comm; @where[pid] = kstack; }",
    ];
    let all: Vec<String> = programs.iter().map(|program| format!("{program}\n----\n{}", translated(program))).collect();
    insta::assert_snapshot!(all.join("\n========\n"));
}

#[test]
fn statements_and_operators() {
    let program = r#"
#!/usr/bin/env bpftrace
#include <linux/sched.h>
#define MINE 0x10
struct mine { int a; };
config = { max_map_keys = 100 }
/* loops */
kprobe:f /comm == "dd" && (arg0 & 0xf0) != 0x10/ {
  let $unset;
  $i = 0;
  while ($i < 5) { $i++; if ($i == 3) { continue } }
  for ($j : 0..10) { @n[$j] += $j; }
  unroll(3) { printf("%llu %5d %-8s|%%|%r\n", arg1, $i, comm, buf(arg2, 16)); }
  $p = (uint32 *)arg1;
  @v = *$p + $p[2] + *(uint8 *)arg2;
  @narrow = (uint16)arg0 + (int32)arg1;
  $t = (struct task_struct *)arg3;
  if ($t->pid > 1 || (*$t).tgid < 2) { @tids[$t->comm] = count(); } else if (!arg0) { @none++; } else { return; }
  @name = arg0 == 1 ? "one" : "other";
  @own = curtask->pid;
  @equal = strncmp(comm, "bash", 4) == 0;
  if (has_key(@n, 3)) { printf("%d of %d\n", @n[3], len(@n)); }
  for ($kv : @n) { printf("%d: %d\n", $kv.0, $kv.1); }
  unless (arg0) { exit(); @never = 1; }
  if (arg0 == 3) { exit(); }
  print(kstack); print(@n[1]); zero(@n); errorf("bad %d", arg0);
  system("echo %d", pid); cat("/proc/%d/stat", pid);
  printf("%s %s\n", $t->comm, $t->real_parent->something);
  $dport = bswap($t->dport); @lport = bswap((uint16)arg0) + bswap($dport);
  @constants = MINE + AF_INET6;
  @by[args.prev_comm] = count(); @with[args.next_comm == "dd"] = 1; print(@n); print(@by);
  $size = sizeof(struct task_struct) + sizeof(uint16) + offsetof(struct task_struct, pid);
  $wait = 10ms + 1e3 + 0x1F + 1_000;
  if ($1 > $#) { printf("%s\n", str($2)); }
}
fexit:nfs:nfs_open { @[args.inode->i_ino, retval] = count(); @string[tid] = str(args.inode == 0 ? 1 : 2, 200); }
interval:ms:100 { @elapsed = elapsed; print(@elapsed); printf("%s", strftime("%Y %H:%M:%S", nsecs)); printf("%s", strftime("%d|%e", nsecs)); printf("%s", strftime("%T", @elapsed)); exit(); }
t:syscalls:sys_enter_execve { join(args.argv); join(args.argv, ","); }
"#;
    insta::assert_snapshot!(translated(program));
}

#[test]
fn what_may_be_empty_or_zero() {
    let program = "k:f { @m = max(arg2); @a[comm] = avg(arg2); @h[comm] = hist(arg2); $d = arg1; @r %= $d; $d /= 7; }\n\
        i:s:1 { printf(\"%d %d\\n\", @m, @a[\"x\"] / @r); print(@h[\"x\"]); print(@a[\"x\"]); clear(@m); @n = 10 / 0x10 + 3 % $1; }";
    insta::assert_snapshot!(translated(program));
}

#[test]
fn probes_after_declarations() {
    for declaration in [
        "config = { max_map_keys=10 }",
        "config = { a=1; b=2 };",
        "struct x { int a; }",
        "struct x { int a; } __attribute__((packed));",
        "typedef struct { int a; } *x, y[2];",
        "typedef int x;",
        "struct x;",
    ] {
        for probe in ["kprobe:f", "BEGIN", "k:f / 1 / // why\n", "k:f / arg0 / 2 == 1 / /* why { */"] {
            let script = translated(&format!("{declaration}\n{probe} {{ @a = 1; }}"));
            assert!(script.contains("a = 1\n"), "{declaration} {probe}: {script}");
        }
    }
}

#[test]
fn loops_over_maps() {
    let program = "k:f { @n[kstack(3), comm] = count(); @where[tid] = ustack; }\n\
        i:s:1 { for ($kv : @n) { print($kv.0.0); printf(\"%s %s %d\\n\", $kv.0.0, $kv.0.1, $kv.1); }\n\
        for ($kv : @where) { print($kv.1); @last = $kv.1; } print(@last); }";
    insta::assert_snapshot!(translated(program));
}

#[test]
fn loops_that_change_their_map() {
    let program = "k:f { @n[comm, pid] = count(); @a[tid] = avg(arg0); @z[comm] = count(); }\n\
        i:s:1 { for ($kv : @n) { if ($kv.1 > 1) { delete(@n[$kv.0.0, $kv.0.1]); } }\n\
        for ($kv : @a) { printf(\"%d %d\\n\", $kv.0, $kv.1); delete(@a, $kv.0); }\n\
        for ($kv : @z) { for ($other : @z) { @z[$other.0]++; } }\n\
        zero(@z); for ($kv : @z) { print(@z[$kv.0]); } }";
    insta::assert_snapshot!(translated(program));
}

#[test]
fn maps_cleared_at_the_end() {
    let script = translated(
        "k:f { @x = 1; @y++; @z = 1; @k[tid] = 1; } END { clear(@x); if (@z) { clear(@z); } clear(@k); delete(@y); clear(@w); @w = 2; }",
    );
    let last = script.split("As bpftrace does at the end.").nth(1).unwrap();
    assert!(
        !last.contains("@x")
            && !last.contains("@y")
            && last.contains("@z")
            && last.contains("@w")
            && last.contains("@k"),
        "{last}"
    );
}

#[test]
fn maps_and_variables_of_own_functions_differ() {
    let script = translated(
        "k:f { @text[1] = 1; @index[1] = 1; @pointer[1] = 1; @bit[1] = 1; join(arg0); }\n\
        t:sched:sched_switch { @ = args.prev_state; }",
    );
    for name in ["text", "index", "pointer", "bit"] {
        let used =
            |line: &str| line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == name);
        let functions = script.split("\nprobe ").next().unwrap().split("\nfunction ").skip(1);
        assert!(
            functions.into_iter().all(|function| !function.split("}\n").next().unwrap().lines().any(used)),
            "{name}: {script}"
        );
    }
}

#[test]
fn fields_of_records() {
    let programs = [
        "t:sched:sched_switch /args.prev_state == 1/ { @[args.prev_comm] = count(); }",
        "t:block:block_rq_complete, t:block:block_rq_error { @[args.error] = count(); }",
        "t:sched:sched_process_wait { @[args.pid] = count(); }",
        "t:rxrpc:rxrpc_transmit { @[args.call] = count(); }",
        "t:sched:sched_* { @[args.prev_state] = count(); }",
        "t:block:block_rq_issue, t:block:block_rq_complete { @ = sum(args.nr_sector); }",
        // Its arguments are the parameters.
        "rt:sched_switch { @[args.prev_state] = count(); }",
    ];
    let all: Vec<String> = programs.iter().map(|program| translated(program)).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_has_no_counterpart_is_an_error() {
    let programs = [
        "kprobe:f+4 { }",
        "iter:task { }",
        "kprobe:f { @ = (1, 2); }",
        "kprobe:f { skboutput(\"x\", arg0, 1, 0); }",
        "kprobe:f { $p = arg0; printf(\"%d\", $p->x); }",
        "kprobe:f { printf(\"%d\", AF_INET); }",
        "interval:s:1 { printf(\"%d\", arg0); }",
        "kprobe:f { override(-1); }",
        "kprobe:f { @ = bswap(arg0); }",
        "kprobe:f { @ = hist(arg0, 3); }",
        "kprobe:f { @ = nsecs(sw_tai); }",
        "kprobe:f { @ = hist(arg0); print(@, 0, 10); }",
        "fn f($x: int64): int64 { return $x; }",
        "kprobe:f { printf(\"%s\", strftime(\"%j\", nsecs)); }",
        // Not bpftrace.
        "",
        "kprobe:f",
        "kprobe:f { x = ; }",
        "kprobe:f { printf(\"abc); }",
        "kprobe:f /pid == 1 { }",
        "probe:f { }",
        "kprobe:f { retval }",
        "interval:x:1 { }",
        "kprobe:f { ` }",
        "kprobe:f { if (1) { }",
    ];
    let all: Vec<String> = programs.iter().map(|program| translated(program)).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn depth_is_bounded() {
    let many = 5_000;
    for expression in [
        format!("{}1", "!".repeat(many)),
        format!("1{}", "+1".repeat(many)),
        format!("{}1{}", "f(".repeat(many), ")".repeat(many)),
        format!("{}1{}", "@[".repeat(many), "]".repeat(many)),
        format!("args{}", ".x".repeat(many)),
        format!("1{}", "?1:1".repeat(many)),
    ] {
        assert!(translated(&format!("k:f {{ @ = {expression}; }}")).contains("nested too deep"), "{expression:.20}");
    }
    for body in [
        format!("{}{}", "if (1) {".repeat(many), "}".repeat(many)),
        format!("if (1) {{ }}{}", " else if (1) { }".repeat(many)),
    ] {
        assert!(translated(&format!("k:f {{ {body} }}")).contains("nested too deep"), "{body:.20}");
    }
    assert!(translated(&format!("k:f {{ @ = {}1; }}", "(".repeat(many) + &")".repeat(many))).contains("E0601"));
    assert!(translated(&format!("k:f {{ @ = 1{}; }}", " + 1".repeat(150))).contains("global"));
}

/// Pieces of programs in random order: an answer or messages, whatever the text is.
#[test]
fn any_text_is_answered() {
    let pieces = [
        "kprobe:f",
        "{",
        "}",
        "/",
        "@x",
        "[",
        "]",
        "(",
        ")",
        "$a",
        "=",
        "count()",
        ";",
        ",",
        "\"",
        "\\",
        "1",
        "0x",
        ".",
        "->",
        "for",
        ":",
        "..",
        "if",
        "else",
        "(struct a *)",
        "*",
        "&",
        "é",
        "//",
        "/*",
        "*/",
        "#",
        "$",
        "@",
        "$1",
        "hist(1)",
        " ",
    ];
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::from("kprobe:f {");
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        text.push('}');
        translated(&text);
    }
}

#[test]
fn maps_without_a_value_are_not_printed() {
    let script = translated(
        "k:f { @n = count(); @s = sum(arg0); @v = arg0; @last = nsecs; @who = comm; } i:s:1 { delete(@last); clear(@who); print(@n); }",
    );
    for guard in ["if (n)", "if (last)", "if (who != \"\")"] {
        assert!(script.contains(guard), "{guard}: {script}");
    }
    assert_eq!(script.matches("if (n)").count(), 2, "{script}");
    // These may be 0.
    assert!(!script.contains("if (s)") && !script.contains("if (v)"), "{script}");
}

#[test]
fn maps_with_text_are_sorted_by_key() {
    let script = translated("k:f { @name[pid, tid] = comm; @count[pid] = count(); } i:s:1 { print(@name, 3); }");
    assert!(script.contains("foreach ([name_key1+, name_key2] in name)"), "{script}");
    assert!(script.contains("foreach ([name_key1-, name_key2] in name limit 3)"), "{script}");
    assert!(script.contains("foreach (count_key in count+)"), "{script}");
}

#[test]
fn buffers_of_text_and_of_memory() {
    let script = translated("k:f { printf(\"%r %r\\n\", buf(comm, 4), buf(arg1, 8)); }");
    assert!(script.contains("bytes_of(execname(), 4), bytes_at(ulong_arg(2), 8)"), "{script}");
    for helper in ["function bytes_of:", "function bytes_at:", "function byte_shown:", "function number_at:"] {
        assert!(script.contains(helper), "{helper}: {script}");
    }
}

#[test]
fn names_of_the_current_process_in_records() {
    let script = translated(
        "t:block:block_rq_issue { @[str(args->comm)] = hist(args->bytes); } t:sched:sched_process_wait { printf(\"%s\\n\", args->comm); }",
    );
    assert!(script.contains("map[execname()] <<< $rq->__data_len"), "{script}");
    assert!(script.contains("printf(\"%s\\n\", execname())"), "{script}");
}
