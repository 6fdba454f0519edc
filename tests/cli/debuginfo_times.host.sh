# Shows: questions to debug information are answered within the limits of docs/bench-debuginfo.md, in time and in memory.
# stdout: ^\| `--export-index FILE` \|
# absent: times its limit$
# all: yes
# alone: yes
# limit: 900

cd "$ROOT"
"$XTASK" bench debuginfo --check --rounds 3
