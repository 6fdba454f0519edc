# Shows: -v reports how each array is locked, and if it is locked as a whole, which handler and operation is the reason.
# stderr: ^Array started: a lock for each of 64 stripes\.$
# stderr: ^Array names: a lock for each of 64 stripes\.$
# stderr: ^Array sums: a lock for each of 64 stripes\.$
# stderr: ^Array counted: values on each CPU\.$
# stderr: ^Array fed: values on each CPU\.$
# stderr: ^Array constant: no lock: nothing changes it while probes are armed\.$
# stderr: ^Array listed: one lock for all of it: kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\) uses more than single elements at .*locks\.stp:7:22\.$
# stderr: ^Array computed: one lock for all of it: kernel\.function\("vfs_write@fs/read_write\.c:[0-9]+"\) uses a key that is not known before it does something else at .*locks\.stp:13:25\.$
# stderr: ^Array two: a lock for each of 64 stripes\.$
# stderr: ^Array called: a lock for each of 64 stripes\.$
# stderr: ^Array wrapping: a lock for each of 16 stripes\.$
# stderr: ^Array by_local: a lock for each of 64 stripes\.$
# stderr: ^Array by_task: a lock for each of 64 stripes\.$
# stderr: ^Array assigned_twice: one lock for all of it: kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\) uses a key that is not known before it does something else at .*locks\.stp:8:19\.$
# stderr: ^Array before: one lock for all of it: kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\) uses a key that is not known before it does something else at .*locks\.stp:9:16\.$
# stderr: ^Array perhaps: one lock for all of it: kernel\.function\("vfs_read@fs/read_write\.c:[0-9]+"\) uses a key that is not known before it does something else at .*locks\.stp:10:44\.$
# stderr: ^Array five: one lock for all of it: kernel\.function\("vfs_write@fs/read_write\.c:[0-9]+"\) uses a fifth element at .*locks\.stp:14:[0-9]+\.$
# stderr: ^Array behind: a lock for each of 64 stripes\.$
# stderr: ^Array again: a lock for each of 64 stripes\.$
# stderr: ^Array noted: a lock for each of 64 stripes\.$
# stderr: ^Array nested: a lock for each of 64 stripes\.$
# stderr: ^Array fifth: a lock for each of 64 stripes\.$
# stderr: ^Array direct: a lock for each of 64 stripes\.$
# stderr: ^Array later: a lock for each of 64 stripes\.$
# stderr: ^Array changed: one lock for all of it: kernel\.function\("vfs_getattr@fs/stat\.c:[0-9]+"\) calls a function that uses more of it than an element with keys known then at .*locks\.stp:35:3\.$
# stderr: ^Array passed: one lock for all of it: kernel\.function\("vfs_getattr@fs/stat\.c:[0-9]+"\) calls a function that uses more of it than an element with keys known then at .*locks\.stp:36:3\.$
# stderr: ^Array recursive: one lock for all of it: kernel\.function\("vfs_getattr@fs/stat\.c:[0-9]+"\) calls a function that uses more of it than an element with keys known then at .*locks\.stp:37:3\.$
# stderr: ^Array by_probe: a lock for each of 64 stripes\.$
# stderr: ^Array by_text: a lock for each of 64 stripes\.$
# stderr: ^Array by_time: one lock for all of it: kernel\.function\("vfs_statx@fs/stat\.c:[0-9]+"\) uses a key that is not known before it does something else at .*locks\.stp:44:46\.$
# stderr: ^Array first: a lock for each of 64 stripes\.$
# stderr: ^Array known_late: a lock for each of 64 stripes\.$
# stderr: ^Array by_element: a lock for each of 64 stripes\.$
# stderr: ^Array by_number: a lock for each of 64 stripes\.$
# stderr: ^Array in_branch: a lock for each of 64 stripes\.$
# stderr: ^Array printed: one lock for all of it: kernel\.function\("vfs_rename@fs/namei\.c:[0-9]+"\) uses a key that is not known before it does something else at .*late\.stp:13:14\.$
# stderr: ^Array (there|back): one lock for all of it: .* takes it after an array that other handlers take before it\.$
# stderr: ^Array mixed: a lock for each of 64 stripes; all of them where kernel\.function\("vfs_unlink@fs/namei\.c:[0-9]+"\) calls a function that uses more of it than an element with keys known then at .*late\.stp:18:15\.$
# stderr: ^Array started: one lock for all of it: -D WHOLE_LOCKS\.$
# stdout: ^7 taken after effects, 1 as a whole$
# stdout: ^1 SPILE_LOCK_WRITE$

cat >locks.stp <<'END'
global started, names, sums, counted, fed, constant, listed, computed, two, called, wrapping%[8], by_local, by_task, assigned_twice, before, perhaps, five
function next_of(x) { return called[x]++ }
probe begin { constant[1] = 2 }
probe kernel.function("vfs_read") {
  started[tid()] = constant[1]; names[execname()] = tid(); sums[tid() + 1, cpu()] = 1
  counted[pid()]++; fed[pid()] <<< 1; wrapping[pid()] = 1
  listed[pid()] = 1; foreach (t in listed) println(t)
  t3 = tid(); if (assigned_twice[t3] == 1) assigned_twice[t3] = 2; t3 = 1
  before[late] = 1; late = tid(); before[late] = 2
  if (pid() > 1) t5 = cpu(); perhaps[t5] = perhaps[t5] + 1
}
probe kernel.function("vfs_write") {
  computed[computed[1]] = 1
  two[1] = 5; two[2] = 6; five[1] = 1; five[2] = 1; five[3] = 1; five[4] = 1; if (five[1]) five[5] = 1
  next_of(1)
}
probe kernel.function("vfs_open") {
  t2 = tid() % 100; task = execname(); if (t2 in by_local) { u = t2 + 1; by_task[task, u] = by_local[t2]; delete by_local[t2] } else by_local[tid() % 100] = 1
}
global behind, again, noted, nested, fifth, direct, later, changed, passed, recursive
function note(i) { if (i in noted) delete noted[i]; else noted[i] = 1; deeper(i + 1) }
function deeper(i) { k = i * 2; nested[k] = nested[k] + 1 }
function change(i) { i = i + 1; changed[i] = 1 }
function pass(name) { passed[name] = 1 }
function recurse(i) { recursive[i] = 1; if (i > 3) recurse(i - 1) }
probe kernel.function("vfs_fsync_range") {
  if (pid() == target()) next
  inode = $file->f_inode; flags = $file->f_flags
  if (flags & 1) flags = 1
  behind[inode] = 1; again[inode, flags] = again[inode, flags] + 1; note(inode); note(inode); fifth[flags]--; fifth[flags] *= 2
}
probe kernel.function("vfs_getattr") {
  direct[$path->dentry] = direct[$path->dentry] + 1
  if ($path->dentry in direct) later[$path->mnt] = 2
  change(1)
  pass(sprint(pid()))
  recurse(2)
}
global by_probe, by_text, by_time
probe kernel.function("vfs_statx") {
  name = probefunc() . ":"
  by_probe[pp(), uid()] = 1 + by_probe[pp(), uid()]
  by_text[name . substr(execname(), 0, 3) . "!", strlen(name)] = tid()
  by_time[name . tz_ctime(gettimeofday_s())] = tid()
}
END
"$SPILE" -r "$RELEASE" -v -p3 locks.stp >locks.c

# Stripes that handlers take where they know the keys; not after they have printed, and not in two orders.
cat >late.stp <<'END'
global first, known_late, by_element, by_number, number, in_branch, printed, there, back, mixed
function part() { foreach (i in mixed) sum += mixed[i]; return sum }
probe kernel.function("vfs_rename") {
  first[tid()] = number
  k = first[tid()] + 1
  known_late[k] = known_late[k] + 1
  by_element[first[tid()]] = 1
  by_number[number] = by_number[number] + 1
  if (k > 3) { j = first[tid()] * k; in_branch[j] = in_branch[j] + 1 }
  there[tid()] = 1; i = there[tid()]; back[i] = 1
  mixed[k] = 1
  println(k)
  printed[k] = 1
}
probe kernel.function("vfs_unlink") {
  number++
  back[tid()] = 1; i = back[tid()]; there[i] = 2
  if (i == 3) part()
}
END
"$SPILE" -r "$RELEASE" -v -p3 late.stp >late.c
echo "$(grep -c 'late = 1;' late.c) taken after effects, $(grep -c 'spile_map_hold_whole' late.c) as a whole"

# One exclusive lock for the whole array.
"$SPILE" -r "$RELEASE" -v -D WHOLE_LOCKS -p3 -e 'global started probe kernel.function("vfs_read") { started[tid()] = 1 }' >whole.c
echo "$(grep -c 'locks_0\[\] = .*SPILE_LOCK_WRITE' whole.c) SPILE_LOCK_WRITE"
! grep -q 'spile_map_hold' whole.c
