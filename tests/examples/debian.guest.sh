# Shows: the examples about programs, on programs as Debian builds them: bash, openssl, python3, perl, ls, cat, sort, fzf (in Go), and the C and C++
# libraries of all; the call of malloc() in every process.
# programs: /usr/bin/openssl /usr/bin/perl /usr/bin/python3.11 /usr/bin/ls /usr/bin/cat /usr/bin/sort /usr/bin/fzf
# programs: /usr/lib/python3.11/encodings/__init__.py /usr/lib/python3.11/encodings/aliases.py /usr/lib/python3.11/encodings/utf_8.py
# script: mallocs examples/mallocs.stp
# script: commands examples/commands.stp
# script: tls examples/tls.stp
# script: mallocstacks -DMAXACTION=1000000 examples/mallocstacks.stp
# script: mutexes examples/mutexes.stp
# script: exceptions examples/exceptions.stp
# script: python examples/python.stp
# script: perlops examples/perlops.stp
# script: libcalls -c /usr/bin/ls examples/libcalls.stp
# script: catcalls -c /usr/bin/cat examples/libcalls.stp
# script: sortcalls -c /usr/bin/sort examples/libcalls.stp
# script: methods examples/methods.stp shapes geo::Circle::*
# script: accounts examples/methods.stp bank bank::*
# script: gethostlatency examples/gethostlatency.stp
# script: threadsnoop examples/threadsnoop.stp
# script: setuids examples/setuids.stp
# script: go tests/examples/go.stp
# script: every tests/examples/every_malloc.stp
# stdout: ^all as expected$
# limit: 240

ifconfig lo 127.0.0.1 up
start_all mallocs commands tls python perlops methods accounts gethostlatency threadsnoop setuids
user >/dev/null
user contend >/dev/null
/usr/bin/perl -e '$> = 4711'
# Both write to one pipe.
(dd if=/dev/zero bs=1 count=30000 & dd if=/dev/zero bs=1 count=30000; wait) 2>/dev/null | cat >/dev/null
echo 'true argument' | bash --norc -i >/dev/null 2>&1
# The server ends with its input, or with the first connection.
mkfifo input
sleep 1000 >input &
keeper=$!
openssl s_server -nocert -psk 0102 -tls1_3 -accept 4433 -naccept 1 <input >received 2>server.err &
wait_for received ACCEPT 60
(echo 'a secret text'; sleep $((3 * PATIENCE))) | openssl s_client -quiet -no_ign_eof -psk 0102 -tls1_3 -connect 127.0.0.1:4433 >/dev/null 2>client.err || true
wait_for received secret 20 || { cat received server.err client.err; exit 1; }
kill $keeper
/usr/bin/python3.11 -I -S -c 'import gc; gc.collect()' 2>/dev/null
/usr/bin/perl -e 'my $n = 0; for my $i (1 .. 100) { $n += length("x" x $i) } exit($n != 5050)'
shapes >/dev/null
bank >/dev/null
kill -INT $loaders
wait $loaders || true

# session NAME COMMAND: one for this command alone.
session() { spilerun $1.ko -c "$2" >$1.out 2>$1.err || { cat $1.err; exit 1; }; }
session libcalls '/usr/bin/ls /root'
session catcalls '/usr/bin/cat /etc/hostname'
session sortcalls '/usr/bin/sort -n /etc/passwd'
session exceptions 'shapes throw'
session mallocstacks 'user leak'
session mutexes 'user contend'
session every 'user leak'
session go '/usr/bin/fzf --version'

failed=
shows mallocs '^user +[1-9][0-9]* +[0-9]+ +[0-9]+$'
shows mallocs '^perl +[1-9][0-9]* +[0-9]+ +[0-9]+$'
shows commands '^ *[0-9]+ +0 true argument$'
shows tls '^ *[0-9]+ openssl +> +14 "a secret text\\n"$'
shows tls '^ *[0-9]+ openssl +< +14 "a secret text\\n"$'
shows python '^python3.11: [1-9][0-9]* collections, [0-9]+ us, [0-9]+ us at most$'
shows python '^ +[1-9][0-9]* compile$'
shows python '^ +[1-9][0-9]* encodings.utf_8$'
shows perlops '^ +100 length$'
shows perlops '^ +100 repeat$'
shows gethostlatency '^[0-9:]{8} openssl +[0-9]+ +[0-9]+ 127.0.0.1$'
shows threadsnoop '^[0-9:]{8} user +[0-9]+ [a-z_]+'
shows setuids '^[0-9:]{8} perl +[0-9]+ +0 done +setre?s?uid\('
shows exceptions '^shapes \([0-9]+\) throws St13runtime_error$'
shows exceptions '^ 0x[0-9a-f]+ : (void )?throws\(int\)( \[clone .cold\])?\+0x'
shows methods '^ +1 +[0-9]+ +[0-9]+ .*rename'
shows methods '^ +1 +[0-9]+ +[0-9]+ .*area'
shows accounts '^ +1 +[0-9]+ +[0-9]+ .*deposit$'
shows libcalls '^ +[1-9][0-9]* +[0-9]+ +[0-9]+ opendir$'
shows catcalls '^ +1 +[0-9]+ +[0-9]+ posix_fadvise$'
shows sortcalls '^ +[1-9][0-9]* +[0-9]+ +[0-9]+ setlocale$'
shows mallocstacks '^user;_start;.*;main;forgets;take_memory 10000$'
shows mutexes '^user: mutex 0x[0-9a-f]+, 1 waits, [0-9]{5,} us on average, [0-9]{5,} us at most$'
shows mutexes '^ 0x[0-9a-f]+ : waits_for_mutex\+0x'
shows every '^user 1000$'
shows every '^user 300$'
[ "$(grep -c '^user 1000$' every.out)" = 10 ] || { echo "every: not the calls that it makes"; failed=1; }
shows go '^main begins$'
shows go '^options: [1-9]'
# Freed memory is not shown, and all lines except the program's own are folded stacks.
! grep -Ev '^looked=0$|^[^;]+(;[^;]+)* [0-9]+$' mallocstacks.out || failed=1
if cat ./*.err | grep -E 'ERROR|WARNING'; then failed=1; fi
[ -n "$failed" ] || echo all as expected
