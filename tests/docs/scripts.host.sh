# Shows: every script of the book, of the README and of the other pages compiles, and their commands that only list something
# print it.
# stdout: ^all compile: [1-9][0-9]+$
# stdout: ^all list: [1-9][0-9]*$
# limit: 600

rm -rf pages
"$XTASK" docs --extract pages || exit 1

cat >one.sh <<'END'
# one.sh SCRIPT: prints a line with the error, if there is one.
"$SPILE" -r "$RELEASE" -p3 $MODULES $(cat "${1%.stp}.options") "$1" >"$1.c" 2>"$1.log" || echo "does not compile: $1"
END
find pages -name '*.stp' | sort | xargs -P "$(nproc)" -n 1 sh one.sh >failed

if [ -s failed ]; then
  cat failed
  sed 's/^does not compile: //' failed | while read -r script; do
    echo "$script:"
    cat "$script" "$script.log"
  done
  exit 1
fi
echo "all compile: $(find pages -name '*.stp' | wc -l)"

# Each command as the page has it, for the kernel of the test.
grep -E '^spile (-l|-L|--list-lines|--dump-probe-aliases|--dump-functions)' pages/commands | sort -u >listing
spile() { "$SPILE" -r "$RELEASE" "$@"; }
while read -r command; do
  eval "$command" </dev/null >listed 2>listed.err && [ -s listed ] || { echo "lists nothing: $command"; cat listed.err; exit 1; }
done <listing
echo "all list: $(wc -l <listing)"
