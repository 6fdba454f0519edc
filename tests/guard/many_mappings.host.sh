# Shows: a variable of a program that the current process has not mapped is looked for in all its mappings, and the search counts as
# statements of the run: a process with thousands of mappings does not make a short handler a long one.
# stdout: ^few: ten searches, 0$
# stdout: ^many: ERROR: MAXACTION exceeded near operator .@var. at search.stp:4:[0-9]+ .*, 1$
# limit: 90

cat >held.c <<'END'
int counter = 7;
int main(void)
{
	return counter - 7;
}
END
cat >maps.c <<'END'
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* maps COUNT: makes a system call with so many mappings. */
int main(int argc, char **argv)
{
	int i;

	/* Neighbours differ in what they permit, so none are merged. */
	for (i = 0; i < atoi(argv[1]); i++)
		if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			return 1;
	getppid();
	return 0;
}
END
gcc -g -O2 -o held held.c && gcc -O2 -o maps maps.c || exit
cat >search.stp <<END
probe begin { println("ready") }
probe syscall.getppid {
  if (execname() != "maps") next
  for (i = 0; i < 10; i++) if (&@var("counter@held.c", "$PWD/held")) println("there")
  println("ten searches")
  exit()
}
END
"$SPILE" -r "$RELEASE" -p4 -DMAXACTION=20 -m search search.stp >/dev/null || exit
cat >scene.sh <<END
maps=$PWD/maps
END
cat >>scene.sh <<'END'
cd /root
. ./library.sh
# judge NAME MAPPINGS
judge() {
	start_armed search ready
	$maps $2
	sleep 1
	stop INT 2>/dev/null || true
	echo "$1: $({ sed 1d search.out; cat search.err; } | head -n 1), $status"
	removed search
}
judge few 5
judge many 5000
END
"$XTASK" guest --program "$PWD/maps" --program "$PWD/held" --file search.ko --file "$ROOT/tests/xtask/src/test/library.sh" --file scene.sh '. /root/scene.sh'
