# Shows: programs of bpftrace, translated, print the same in a guest as with bpftrace; parts without a counterpart are
# errors.
# stdout: ^begin 1$
# stdout: ^none: 0 0 0$
# stdout: ^sleep 1$
# stdout: ^open /dev/zero$
# stdout: ^7 reads of 700 bytes$
# stdout: ^a=x$
# stdout: ^kept: 1 of 2$
# stdout: ^ticks$
# stdout: ^@most: 100$
# stdout: ^@average: 87$
# stdout: ^ +100 \|@+ +7$
# stdout: ^@stats\[dd\]: count 7, average 100, total 700$
# stdout: ^@reads\[dd, 100\]: 7$
# stdout: ^ +64 \|@+ +7$
# stdout: ^@names\[zero\]: 1$
# stdout: ^@null: 0$
# stdout: ^@slept: 1$
# stdout: ^cleared: 0$
# stdout: ^by standard input: probe begin \{$
# stdout: ^written: probe begin \{$
# stdout: ^wrong: 1 1$
# limit: 120

cat >program.bt <<'END'
BEGIN { printf("begin %d\n", cpid > 1); printf("none: %d %d %d\n", @most, @average, 7 / @zero); print(@bytes); print(@stats["x"]); @zero = 0; @start[1] = nsecs; @text["a"] = "x"; }
kprobe:vfs_read /pid == cpid/ { @reads[comm, arg2] = count(); @size = hist(arg2); @sum = sum(arg2); @where[kstack(1)] = count(); }
kretprobe:vfs_read /pid == cpid && retval > 0/ { @bytes = lhist(retval, 0, 1000, 100); @stats[comm] = stats(retval); }
fentry:vfs_open /pid == cpid/ { @names[str(args.path->dentry->d_name.name)] = count(); @null = *(uint32 *)8; }
tracepoint:syscalls:sys_enter_openat /pid == cpid && str(args.filename) != "x"/ { printf("open %s\n", str(args.filename)); }
tracepoint:syscalls:sys_exit_read /pid == cpid/ { @average = avg(args.ret); @most = max(args.ret); }
tracepoint:syscalls:sys_enter_execve { join(args.argv); }
tracepoint:sched:sched_switch /args.prev_state == 1/ { @slept = 1; }
interval:ms:200 { @ticks++; }
profile:hz:50 { @task[curtask->pid == tid] = 1; @at[cpu] = max(elapsed); }
END {
  clear(@start); clear(@where); clear(@at);
  printf("%d reads of %d bytes\n", @reads["dd", 100], @sum);
  for ($kv : @text) { printf("%s=%s\n", $kv.0, $kv.1); }
  @two[1] = 1; @two[2] = 2; for ($kv : @two) { if ($kv.1 == 2) { delete(@two[$kv.0]); } }
  for ($kv : @two) { printf("kept: %d of 2\n", $kv.1); } zero(@two);
  if (@ticks) { printf("ticks\n"); }
}
END
"$SPILE" --from-bpftrace program.bt >program.stp || exit 1
"$SPILE" -r "$RELEASE" --guest program.stp -c 'sh -c "sleep 1; exec dd if=/dev/zero of=/dev/null bs=100 count=7"' >program.out
cat program.out
echo "cleared: $(grep -c '@start\|@where\|@at' program.out)"
echo 'BEGIN { exit(); }' | "$SPILE" --from-bpftrace - | sed -n '/^probe/s/^/by standard input: /p'
"$SPILE" --from-bpftrace 'BEGIN { exit(); }' -o written.stp
sed -n '/^probe/s/^/written: /p' written.stp
status=0
"$SPILE" --from-bpftrace 'iter:task { print(1); }' >wrong.stp 2>wrong.err || status=$?
echo "wrong: $status $(grep -c '^error\[E0602\]: `iter` has no counterpart in scripts' wrong.err)"
