# Shows: with any damage to the cached index of debug information, the results are right.
# limit: 600
# stdout: ^two at once: right$
# stdout: ^kept: right$
# stdout: ^killed while writing: right$
# stdout: ^cut short: right$
# stdout: ^of another version: right$
# stdout: ^flipped: right$
# stdout: ^(disk full: right|skipped: no file system of a size can be mounted)$
# stdout: ^(read-only: right|skipped: no read-only file system can be mounted)$

all='kernel.function("*")' some='kernel.function("vfs_*")'
list() { "$SPILE" -r "$RELEASE" -l "$@"; }
right() { # right NAME EXPECTED FILE...: the files are all as expected
  name=$1 expected=$2
  shift 2
  for file; do
    cmp "$expected" "$file" || return 1
  done
  echo "$name: right"
}

"$SPILE" --disable-cache -r "$RELEASE" -l "$some" >some.expected
export SPILE_CACHE_DIR="$PWD/cache"
list "$all" >first &
one=$!
list "$all" >second &
two=$!
wait $one
wait $two
[ "$(wc -l <first)" -gt 60000 ] || { echo "only $(wc -l <first) lines"; exit 1; }
right "two at once" first second
list "$all" >third
right kept first third

# Killed at any point; the last runs leave a half-written entry.
rm -r cache
for tenths in 1 3 5 8 12 16 20; do
  # Not by the function: a shell between would be what is killed.
  "$SPILE" -r "$RELEASE" -l "$some" >/dev/null 2>&1 &
  builder=$!
  sleep "$(awk "BEGIN { print $tenths / 10 }")"
  kill -9 $builder 2>/dev/null || true
  wait $builder 2>/dev/null || true
done
list "$some" >after
right "killed while writing" some.expected after

damage() { # damage NAME COMMAND...: done to each file of the index; it is made again
  name=$1
  shift
  for file in cache/index/*; do
    "$@" "$file"
  done
  list "$some" >damaged
  list "$some" >again
  right "$name" some.expected damaged again
}
cut_short() { truncate -s $(($(stat -c %s "$1") / 2)) "$1"; }
another() { printf 'spile-cache 9\n' | dd of="$1" conv=notrunc status=none; }
flipped() { printf '\377\377\377\377' | dd of="$1" bs=1 seek=20000 conv=notrunc status=none; }
damage "cut short" cut_short
damage "of another version" another
damage flipped flipped

mkdir small
if mount -t tmpfs -o size=256k none small 2>/dev/null; then
  chmod 700 small
  SPILE_CACHE_DIR="$PWD/small" list "$some" >full
  SPILE_CACHE_DIR="$PWD/small" list "$some" >more
  right "disk full" some.expected full more
  if mount -o remount,ro small 2>/dev/null; then
    SPILE_CACHE_DIR="$PWD/small/cache" list "$some" >readonly
    right read-only some.expected readonly
  else
    echo "skipped: no read-only file system can be mounted"
  fi
  umount small
else
  echo "skipped: no file system of a size can be mounted"
  echo "skipped: no read-only file system can be mounted"
fi
