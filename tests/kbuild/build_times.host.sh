# Shows: builds take as long as the goals of docs/bench-build.md allow, as multiples of the time of an empty file's
# compilation; where the page says that a goal is not met, as long as the page says.
# all: yes
# alone: yes
# stdout: ^no regression$
# limit: 3600

(cd "$ROOT" && "$XTASK" bench build --check --rounds 5 >"$OLDPWD/report") && echo "no regression" || cat report >&2
