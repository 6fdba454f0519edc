# Shows: a module in the cache is used only for the program that it was built for: not from another working directory, after a
# symbolic link or PATH leads elsewhere, for another -c or -x, where a file has appeared that was looked for, or for files of a
# pattern; and modules with other arguments have other names.
# stdout: ^directory: a b b cached$
# stdout: ^command: a b b cached$
# stdout: ^process: a b b cached$
# stdout: ^link: a b b cached$
# stdout: ^optional: none b b cached$
# stdout: ^PATH: a b b cached$
# stdout: ^library: a b b cached$
# stdout: ^command of a library's alias: a b b cached$
# stdout: ^pattern of a library's alias: a ab$
# stdout: ^debug link: compiled compiled cached$
# stdout: ^header of embedded C: differs cached$
# stdout: ^names: 3$
# limit: 120

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
cat >program.c <<'END'
#include <unistd.h>
int foo(int number) { return number + 1; }
int main(int count, char **words) { if (count > 1) sleep(100); return foo(count) - 2; }
END
echo 'int bar(int number) { return number + 1; }' >library.c
echo 'int bar(int); int main(void) { return bar(-1); }' >user.c
for each in a b; do
	mkdir $each
	gcc -g -O0 -o $each/prog program.c
	gcc -g -O0 -shared -fPIC -o $each/libcached.so library.c
done
gcc -g -o user user.c -La -lcached
here=$PWD

# built OPTIONS...: which of the programs the module probes, and whether it came from the cache.
built() {
	rm -f m.ko
	"$SPILE" -r "$RELEASE" -v -p4 -m m "$@" >"$here/log" 2>&1 || cat "$here/log" >&2
	found=
	for each in a b; do
		! strings m.ko | grep -q "^$here/$each/" || found=$found$each
	done
	echo "${found:-none}$(grep -q 'using cached module' "$here/log" && echo ' cached' || true)"
}

probe='probe process("./prog").function("foo") { exit() }'
echo "directory: $(cd a && built -e "$probe") $(cd b && built -e "$probe") $(cd b && built -e "$probe")"
probe='probe process.function("foo") { exit() }'
echo "command: $(cd a && built -c ./prog -e "$probe") $(cd b && built -c ./prog -e "$probe") $(cd b && built -c ./prog -e "$probe")"

# The same number, another program.
cat >stay.c <<'END'
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int foo(int number) { return number + 1; }
/* argv[1]: the program that goes on when SIGUSR1 comes */
int main(int count, char **words)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (count > 1) {
		sigwait(&set, &number);
		execl(words[1], words[1], NULL);
	}
	sleep(foo(100));
	return 0;
}
END
for each in a b; do gcc -g -O0 -o $each/stay stay.c; done
a/stay "$here/b/stay" &
pid=$!
while [ "$(readlink /proc/$pid/exe)" != "$here/a/stay" ]; do sleep 0.1; done
first=$(built -x $pid -e "$probe")
kill -USR1 $pid
while [ "$(readlink /proc/$pid/exe)" != "$here/b/stay" ]; do sleep 0.1; done
echo "process: $first $(built -x $pid -e "$probe") $(built -x $pid -e "$probe")"
kill $pid

ln -s a current
probe="probe process(\"$here/current/prog\").function(\"foo\") { exit() }"
first=$(built -e "$probe")
ln -sfn b current
echo "link: $first $(built -e "$probe") $(built -e "$probe")"

mkdir later
probe="probe process(\"$here/later/prog\").function(\"foo\") ?, begin { exit() }"
first=$(built -e "$probe")
ln -s "$here/b/prog" later/prog
echo "optional: $first $(built -e "$probe") $(built -e "$probe")"

mkdir early
cp a/prog a/cachedprog
probe='probe process("cachedprog").function("foo") { exit() }'
export PATH=$PWD/early:$PWD/a:$PATH
first=$(built -e "$probe")
cp b/prog b/cachedprog
ln -s "$here/b/cachedprog" early/cachedprog
echo "PATH: $first $(built -e "$probe") $(built -e "$probe")"

probe="probe process(\"$here/user\").library(\"libcached.so\").function(\"bar\") { exit() }"
echo "library: $(LD_LIBRARY_PATH=$PWD/a built -e "$probe") $(LD_LIBRARY_PATH=$PWD/b built -e "$probe") $(LD_LIBRARY_PATH=$PWD/b built -e "$probe")"

mkdir tapset pattern
cat >tapset/own.stp <<'END'
probe own_foo = process.function("foo") { }
END
echo "probe all_foo = process(\"$here/pattern/*\").function(\"foo\") { }" >tapset/all.stp
probe='probe own_foo { exit() }'
echo "command of a library's alias: $(built -I tapset -c "$here/a/prog" -e "$probe") $(built -I tapset -c "$here/b/prog" -e "$probe") $(built -I tapset -c "$here/b/prog" -e "$probe")"
probe='probe all_foo { exit() }'
ln -s "$here/a/prog" pattern/one
first=$(built -I tapset -e "$probe")
ln -s "$here/b/prog" pattern/two
echo "pattern of a library's alias: $first $(built -I tapset -e "$probe")"

# The debug information of a program is installed later.
objcopy --only-keep-debug a/prog prog.debug
strip -o linked a/prog
objcopy --add-gnu-debuglink=prog.debug linked
mv prog.debug apart
probe="probe process(\"$here/linked\").begin, process(\"$here/linked\").function(\"foo\") ? { exit() }"
compiled() { case $(built "$@") in *cached) echo cached ;; *) echo compiled ;; esac; }
first=$(compiled -e "$probe")
mv apart prog.debug
echo "debug link: $first $(compiled -e "$probe") $(compiled -e "$probe")"

mkdir headers1 headers2
echo '#define WORD 5' >headers1/word_of_test.h
echo '#define WORD 6' >headers2/word_of_test.h
cat >c.stp <<'END'
%{
#include <word_of_test.h>
%}
function word:long () %{ STAP_RETURN(WORD); %}
probe begin { println(word()); exit() }
END
CPATH=$PWD/headers1 built -g c.stp >/dev/null
mv m.ko first.ko
CPATH=$PWD/headers2 built -g c.stp >/dev/null
differs=$(cmp -s first.ko m.ko || echo differs)
echo "header of embedded C: $differs$(CPATH=$PWD/headers2 built -g c.stp | sed 's/^none//')"

# Without -m.
echo 'global g = 1 probe begin { println($1 + g); exit() }' >n.stp
{
	"$SPILE" -r "$RELEASE" -p4 n.stp 1
	"$SPILE" -r "$RELEASE" -p4 n.stp 2
	"$SPILE" -r "$RELEASE" -p4 -G g=5 n.stp 1
} | sort -u >names
echo "names: $(wc -l <names)"
