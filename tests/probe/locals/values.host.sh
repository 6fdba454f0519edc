# Shows: variables in every kind of location, read at every statement where they are available, have the values that the module
# itself prints: registers, the stack, structs in one and two registers, also returned, constants, computed values, values known
# only to the caller, pointers to optimised-out objects, bit-fields, frames of unknown size; with DWARF 5 and 4 of gcc, and with
# clang.
# limit: 300
# stdout: ^gcc5: 5[0-9] variables, each as the module says, at [1-9][0-9]{2,} places; without a place:( (around\.local|through\.q)\.[xy]| computed\.quotient| none)*$
# stdout: ^gcc4: 5[0-9] variables, each as the module says, at [1-9][0-9]{2,} places; without a place:( (around\.local|through\.q)\.[xy]| computed\.quotient| none)*$
# stdout: ^clang: 5[0-9] variables, each as the module says, at [1-9][0-9]{2,} places; without a place:( through\.q\.[xy]| pointed\.p0| parameters\.d| memory\.taken| none)*$

cat >values.in <<'EOS'
# Every variable of the module @1, built from tests/fixtures/locals, at every statement where it has a value: each value
# once. AT{NAME} is the line that prints NAME: for variables that have a location before they have a value, such as those in
# memory.
global seen
function record(name:string, value:long) { seen[name . "=" . sprint(value)]++ }
@define T(name, variable) %( if (@defined(@variable)) record(@name, @variable) %)

probe module(@1).statement("parameters@*values.c:*") {
  @T("parameters.a", $a) @T("parameters.b", $b) @T("parameters.c", $c) @T("parameters.d", $d)
  @T("parameters.e", $e) @T("parameters.f", $f) @T("parameters.g", $g) @T("parameters.h", $h)
}
probe module(@1).statement("structs@*values.c:*") {
  @T("structs.p.x", $p->x) @T("structs.p.y", $p->y)
  @T("structs.b.many3", $b->many[3]) @T("structs.b.last", $b->last) @T("structs.color", $color)
}
# gcc 12 describes the shifted register as the struct itself.
probe module(@1).function("structs") { @T("structs.s.i", $s->i) @T("structs.s.s", $s->s) @T("structs.s.c", $s->c) }
probe module(@1).statement("AT{memory.inner}") {
  @T("memory.taken", $taken) @T("memory.row2", $row[2]) @T("memory.low", $fields->low) @T("memory.middle", $fields->middle)
  @T("memory.high", $fields->high) @T("memory.negative", $fields->negative) @T("memory.wide", $fields->wide)
  @T("memory.inner", $inner)
}
probe module(@1).statement("computed@*values.c:*") {
  @T("computed.a", $a) @T("computed.b", $b) @T("computed.byte", $byte) @T("computed.answer", $answer)
  @T("computed.narrow", $narrow) @T("computed.shifted", $shifted) @T("computed.sum", $sum) @T("computed.product", $product)
}
probe module(@1).statement("AT{computed.b}") { @T("computed.quotient", $quotient) }
probe module(@1).statement("dead@*values.c:*") {
  @T("dead.first", $first) @T("dead.second", $second) @T("dead.third", $third)
}
probe module(@1).statement("around@*values.c:*") {
  @T("around.value", $value) @T("around.deep", $deep) @T("around.local.x", $local->x) @T("around.local.y", $local->y)
}
probe module(@1).statement("pointed@*values.c:*") { @T("pointed.p0", $p[0]) }
probe module(@1).statement("around@*values.c:*") { @T("around.single", $single) }
probe module(@1).statement("through@*values.c:*") {
  @T("through.factor", $factor) @T("through.q.x", $q->x) @T("through.q.y", $q->y)
}
probe module(@1).statement("variable_size@*values.c:*") { @T("variable_size.count", $count) }
probe module(@1).statement("AT{through.factor}") { @T("through.scaled", $scaled) }
probe module(@1).statement("AT{variable_size.room2}") { @T("variable_size.room2", $room[2]) }
probe module(@1).function("make_small").return {
  @T("make_small.i", $return->i) @T("make_small.s", $return->s) @T("make_small.c", $return->c)
}
probe module(@1).function("make_pair").return { @T("make_pair.x", $return->x) @T("make_pair.y", $return->y) }
probe module(@1).function("make_big").return { @T("make_big.many3", $return->many[3]) @T("make_big.last", $return->last) }
probe module(@1).function("values_log") { if (kernel_string($name) == "values_run.hidden") record("values_run.hidden", @var("hidden@values.c", @1)) }
probe begin { println("ready") }
probe end { foreach (what in seen) println(what, " ", seen[what]) }
EOS

awk 'NR == FNR { if (match($0, /LOG\("[^"]*/)) line[substr($0, RSTART + 5, RLENGTH - 5)] = FNR; next }
	match($0, /AT\{[^}]*\}/) && !/^#/ {
		name = substr($0, RSTART + 3, RLENGTH - 4)
		$0 = substr($0, 1, RSTART - 1) substr(name, 1, index(name, ".") - 1) "@*values.c:" line[name] substr($0, RSTART + RLENGTH)
	}
	{ print }' "$ROOT/tests/fixtures/locals/values.c" values.in >values.stp
files= commands=
for kind in gcc5 gcc4 clang; do
	name=locals_$kind
	mkdir "$kind"
	cp "$ROOT"/tests/fixtures/locals/* "$kind"
	case $kind in
	gcc5) how=VALUES_FLAGS=-gdwarf-5 ;;
	gcc4) how=VALUES_FLAGS=-gdwarf-4 ;;
	clang) how=VALUES_CC=clang ;;
	esac
	make -C "/lib/modules/$RELEASE/build" M="$PWD/$kind" NAME="$name" "$how" modules >"$kind.log" 2>&1 || cat "$kind.log"
	"$SPILE" -r "$RELEASE" -d "$PWD/$kind/$name.ko" -p4 -m "read_$kind" values.stp "$name" >"read_$kind.log" 2>&1 || cat "read_$kind.log"
	files="$files --file $kind/$name.ko --file read_$kind.ko"
	commands="$commands insmod /root/$name.ko; spilerun /root/read_$kind.ko -c 'echo 1 >/sys/module/$name/parameters/run' |
		sed 's/^/$kind read /; s/^$kind read WARNING/WARNING/';"
done
"$XTASK" guest $files "$commands dmesg | sed -n 's/.* locals_\\([a-z0-9]*\\): \\([a-z_0-9.]*=.*\\)/\\1 logged \\2/p'" >guest.log 2>&1
for kind in gcc5 gcc4 clang; do
	tr -d '\r' <guest.log | awk -v kind="$kind" '
		$1 == kind && $2 == "logged" { logged[$3]; name = $3; sub(/=.*/, "", name); names[name] }
		$1 == kind && $2 == "read" && $3 ~ /=/ { read[$3] = $4 }
		END {
			for (what in read) {
				name = what
				sub(/=.*/, "", name)
				if (what in logged) { right[name]; places += read[what] } else wrong = wrong " " what
			}
			for (name in names) { if (name in right) count++; else missing = missing " " name }
			if (wrong != "") print kind ": wrong:" wrong
			else print kind ": " count " variables, each as the module says, at " places " places; without a place:" (missing == "" ? " none" : missing)
		}'
done
grep -v ' logged \| read ' guest.log | head -30
