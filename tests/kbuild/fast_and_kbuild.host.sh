# Shows: a module from the fast build is equivalent to Kbuild's for the same script: symbols, relocations, sections, information,
# versions. Some scripts, or half of all with SPILE_TEST_ALL.
# stdout: ^compared enough$
# stdout: ^not the fast way: 0$
# stdout: ^different: 0$
# stderr: ^Pass 4: .*\(runtime: cached
# limit: 300

# Scripts of other tests that compile, evenly selected.
scripts=$(ls "$ROOT"/tests/language/*/*.stp "$ROOT"/tests/builtin/*/*.stp "$ROOT"/tests/guard/*.stp "$ROOT"/tests/probe/*/*.stp "$ROOT"/tests/regex/*.stp "$ROOT"/examples/*.stp "$ROOT"/examples/*/*.stp)
echo 'probe begin { exit() }' >empty.stp
mkdir fast kbuild
# A separate cache, so that every module is built now; the runtime is built first.
cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache PATH=$COMPILE_ONCE:$PATH
"$SPILE" -r "$RELEASE" -v -p4 -m t_first empty.stp >/dev/null || exit
"$SPILE" -r "$RELEASE" -v -p4 -m t_again empty.stp >/dev/null || exit
cat >one.sh <<'EOF'
	script=$1 number=$2
	cd fast
	"$SPILE" -r "$RELEASE" -g -w -v -p4 -m "t_$number" $MODULES "$script" >"../$number.out" 2>"../$number.err" || exit 0
	cd ../kbuild
	"$SPILE" -r "$RELEASE" -g -w -p4 --kbuild -m "t_$number" $MODULES "$script" >/dev/null 2>&1 || { echo "only the fast way compiles $script"; exit 0; }
	cd ..
	"$XTASK" compare "fast/t_$number.ko" "kbuild/t_$number.ko" >"$number.diff" || { echo "different: $script"; cat "$number.diff"; }
	echo "$number" >>compared
EOF
count=$(echo "$scripts" | wc -l) wanted=14
[ -z "$SPILE_TEST_ALL" ] || wanted=$((count / 2))
echo "$scripts" | awk -v step=$((count / wanted)) 'NR % step == 1 { print $0, ++number }' | xargs -P 2 -L 1 sh one.sh >differences
cat differences >&2
echo "compared $([ "$(wc -l <compared)" -ge $((wanted * 2 / 3)) ] && echo enough || wc -l <compared)"
# Builds whose messages do not mention Kbuild used the fast build.
echo "not the fast way: $(cat [0-9]*.err | grep -c Kbuild)"
echo "different: $(grep -c . differences)"
