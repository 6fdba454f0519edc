# Shows: the generated C has no warnings with -Wall -Wextra of gcc and clang, nor with sparse, if these are installed.
# stdout: ^units compiled: [1-9][0-9]+$
# stdout: ^warnings: 0$
# limit: 240

cp -r "$CACHE" cache
SPILE_CACHE_DIR=$PWD/cache
options="-std=gnu11 -Wall -Wextra -I$ROOT/runtime-c"
export SPILE_CACHE_DIR options
cat >one.sh <<'END'
	script=$1 unit=$2.c
	"$SPILE" -r "$RELEASE" -g -w -p3 "$script" >"$unit" 2>/dev/null || exit 0
	# Warnings in the script's own embedded C do not count.
	! grep -q '"embedded.h"' "$unit" || exit 0
	echo "$unit" >>looked_at
	{
		# As modules are compiled (Makefile.kbuild): merging equal constants takes longer than all else.
		gcc $options -O2 -fno-ipa-icf-variables -S -o /dev/null "$unit"
		! command -v sparse >/dev/null || sparse $options "$unit"
	} >"$unit.log" 2>&1
	[ ! -s "$unit.log" ] || { echo "$script:"; cat "$unit.log"; echo >>complaints; }
END
: >complaints
number=0
for script in "$ROOT"/tests/language/*/*.stp "$ROOT"/tests/builtin/*/*.stp "$ROOT"/tests/guard/*.stp "$ROOT"/tests/probe/*/*.stp "$ROOT"/tests/regex/*.stp "$ROOT"/examples/*.stp; do
	number=$((number + 1))
	printf '%s\n' "$script" "unit_$number"
done | xargs -n 2 -P 2 sh ./one.sh
# One compiler for many units: its start takes longer than most of them.
if command -v clang >/dev/null; then
	: >one.c
	compiler=$(clang $options -fsyntax-only '-###' one.c 2>&1 | sed -n '$s/ "one.c"$//p')
	export compiler
	xargs -n 50 -P 2 sh -c 'eval "$compiler \"\$@\""' clang <looked_at >clang.log 2>&1 || echo >>complaints
	[ ! -s clang.log ] || { cat clang.log; echo >>complaints; }
fi
echo "units compiled: $(wc -l <looked_at)"
echo "warnings: $(wc -l <complaints)"
