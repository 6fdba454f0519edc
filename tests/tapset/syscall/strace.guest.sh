# Shows: with --syscall-style=strace, arguments and results of some 300 system calls of 64-bit programs and of 32-bit ones as strace reads them; the
# programs of tests/fixtures/calls and calls32 make each with known arguments.
# script: calls --syscall-style=strace -DSTP_NO_OVERLOAD tests/tapset/syscall/without_global.stp
# stdout: ^calls 3[0-9][0-9], arguments [5-9][0-9][0-9], structures [3-9][0-9], different 0$
# stdout: ^calls32 [34][0-9][0-9], arguments 1[0-9][0-9][0-9], structures [4-9][0-9], different 0$
# limit: 60

mkdir -p /tmp
# compare PROGRAM
compare() {
	spilerun calls.ko -c "strace -f -o /tmp/strace.txt /usr/bin/$1" >traced.txt
	grep -q '+++ exited with 0 +++' /tmp/strace.txt
	awk -v program="$1" "$reading" /tmp/strace.txt traced.txt
}

reading='
# Numbers in decimal, whatever their base; sets of names sorted; other text unchanged.
function plain(text,    n, i, j, parts, digits, value, swap) {
	sub(/^[a-z_]+=/, "", text)
	sub(/ *\/\*.*\*\//, "", text)
	if (text == "NULL") return "0"
	if (text ~ /^0x[0-9a-f]+$/) {
		value = 0
		for (i = 3; i <= length(text); i++) value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
		return sprintf("%.0f", value)
	}
	if (text ~ /^0[0-7]+$/) {
		value = 0
		for (i = 2; i <= length(text); i++) value = value * 8 + substr(text, i, 1)
		return sprintf("%.0f", value)
	}
	if (text ~ /^[A-Z_0-9a-fx|]+$/ && index(text, "|")) {
		n = split(text, parts, "|")
		for (i = 1; i <= n; i++)
			for (j = i + 1; j <= n; j++)
				if (parts[j] < parts[i]) { swap = parts[i]; parts[i] = parts[j]; parts[j] = swap }
		text = parts[1]
		for (i = 2; i <= n; i++) text = text "|" parts[i]
	}
	return text
}
# Structures in a common form: times as [1.000000005], sets of signals without SIG, nothing after "...".
function shape(text,    times, seconds, part, digits, rest) {
	gsub(/ *\/\*[^*]*\*\//, "", text)
	if (text ~ /^makedev|^QCMD|^IOPRIO/) return text
	sub(/^\{sa_family=AF_UNIX, sun_path=/, "{AF_UNIX, ", text)
	for (times = 0; times < 4 && match(text, /\{tv_sec=-?[0-9]+, tv_[nu]sec=[0-9]+\}/); times++) {
		part = substr(text, RSTART, RLENGTH)
		rest = substr(text, RSTART + RLENGTH)
		digits = part ~ /tv_nsec/ ? 9 : 6
		seconds = part
		sub(/^\{tv_sec=/, "", seconds)
		sub(/,.*/, "", seconds)
		sub(/.*=/, "", part)
		sub(/\}/, "", part)
		text = substr(text, 1, RSTART - 1) sprintf("[%s.%0" digits "d]", seconds, part) rest
	}
	sub(/^\[UTIME_NOW, /, "[[UTIME_NOW], ", text)
	if (text ~ /^\[\[.*\]\]$/) { text = substr(text, 2, length(text) - 2); gsub(/\], \[/, "][", text) }
	if (text ~ /^\{it_interval=/) gsub(/\], it_value=\[/, ",", text)
	sub(/^\{it_interval=/, "", text)
	if (text ~ /^\[.*\]\}$/) sub(/\}$/, "", text)
	if (text ~ /^\{rlim_cur=/) { sub(/^\{rlim_cur=/, "[", text); sub(/, rlim_max=/, ",", text); sub(/\}$/, "]", text) }
	gsub(/RLIM64_/, "RLIM_", text)
	gsub(/SIG/, "", text)
	gsub(/RT_/, "RT", text)
	gsub(/EMPTY/, "", text)
	if (text ~ /^\[[A-Z0-9|]+\]$/ || text ~ /mask=\[/) gsub(/\|/, " ", text)
	gsub(/SA_[A-Z]+ SA_/, "&|", text)
	sub(/, \.\.\..*/, "", text)
	return text
}
# Splits arguments at commas outside of quotes and brackets.
function arguments(text, into,    n, i, c, depth, quoted, part) {
	n = 0; depth = 0; quoted = 0; part = ""
	if (text == "") return 0
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (quoted) {
			if (c == "\\") { part = part c; i++; c = substr(text, i, 1) } else if (c == "\"") quoted = 0
		} else if (c == "\"") quoted = 1
		else if (c == "{" || c == "[" || c == "(") depth++
		else if (c == "}" || c == "]" || c == ")") depth--
		else if (c == "," && !depth) { into[++n] = part; part = ""; if (substr(text, i + 1, 1) == " ") i++; continue }
		part = part c
	}
	into[++n] = part
	return n
}
function is_number(text) { return text ~ /^-?[0-9]+$/ }
# Splits NAME(ARGUMENTS) = RESULT into name, list, result.
function take(line) {
	name = line; sub(/\(.*/, "", name)
	result = line; sub(/^.*\) += /, "", result)
	list = substr(line, length(name) + 2)
	sub(/\) += [^=]*$/, "", list)
	if (name in same) name = same[name]
}
# Calls of 32-bit programs that are other calls with their arguments in memory.
BEGIN { if (program == "calls32") { same["mmap"] = "mmap2"; same["select"] = "_newselect" } }
FNR == 1 { file++ }
file == 1 {
	pid = $1
	sub(/^[0-9]+ +/, "")
	if ($0 ~ /<unfinished \.\.\.>$/) { sub(/ *<unfinished.*/, ""); begun[pid] = $0; next }
	if ($0 ~ /^<\.\.\. /) { sub(/^<\.\.\. [a-z0-9_]+ resumed>/, ""); $0 = begun[pid] $0 }
	if ($0 !~ /^[a-z0-9_]+\(/ || $0 ~ /^(exit_group|execve.* = 0$)/) next
	take($0)
	count[name]++
	strace_list[name, count[name]] = list
	strace_result[name, count[name]] = result
	next
}
{
	pid = $1
	way = $2
	sub(/^[0-9]+ [<>] /, "")
	if (way == ">") { entered[pid] = $0; next }
	if (!(pid in entered)) next
	$0 = entered[pid] " = " $0
	delete entered[pid]
	take($0)
	n = ++traced[name]
	if (!((name, n) in strace_list)) { print "not in strace: " $0; different++; next }
	calls++
	his = strace_result[name, n]
	ours = result
	if (his ~ /^-1 E/) { split(his, words, " "); his = words[2] } else { sub(/ \(.*/, "", his); his = plain(his) }
	if (ours ~ /^-[0-9]+ \(E/) { sub(/^[^(]*\(/, "", ours); sub(/\).*/, "", ours) } else { sub(/ \(.*/, "", ours); ours = plain(ours) }
	if (his != ours) { print "result of " $0 ": strace has " his; different++ }
	a = arguments(strace_list[name, n], left)
	b = arguments(list, right)
	# The arguments of clone have another order there, the halves of _llseek are shown here, and the arguments of an executed program are
	# shown differently.
	if (name == "clone" || name == "execve" || name == "_llseek") a = 0
	if (name == "execveat" && a > 2) a = 2
	for (i = 1; i <= a && i <= b; i++) {
		his = left[i]; ours = plain(right[i])
		# Results through pointers are not shown here; the argument of adjtimex is shown there as changed by the call; a name there may
		# be a number here.
		if (his ~ /^[{\["]/ && ours !~ /^["{\[]/) continue
		if (ours ~ /^[{\[]/) {
			his = shape(his)
			ours = substr(shape(ours), 1, his ~ /^\{/ ? length(his) - 1 : 10000)
			if (his ~ /^\{/) { sub(/\}$/, "", ours); his = substr(his, 1, length(ours)) }
			if (name ~ /adjtime/) continue
			structures++
		}
		his = plain(his)
		if (is_number(ours) && !is_number(his)) { numbers = numbers " " name ":" i; continue }
		compared++
		if (his != ours) { print "argument " i " of " $0 ": strace has " his; different++ }
	}
}
END {
	print "shown as numbers:" numbers
	print program " " calls + 0 ", arguments " compared + 0 ", structures " structures + 0 ", different " different + 0
}'
compare calls
compare calls32
