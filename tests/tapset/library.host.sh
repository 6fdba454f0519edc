# Shows: every function of the library resolves, with the number and types of parameters that it declares, also if no script here
# calls it.
# stdout: ^[0-9]{3,} functions resolve$

sed -n 's/^function \([A-Za-z_0-9]*\)\(:[a-z]*\)\{0,1\} *(\(.*\))\( *{.*\)\{0,1\}$/\1|\2|\3/p' "$ROOT"/tapset/*.stp | while IFS='|' read -r name result parameters; do
  arguments=$(printf '%s' "${parameters%%)*}" | tr ',' '\n' | sed -e 's/.*:string.*/"a"/' -e 's/.*:long.*/1/' | paste -sd,)
  case $result in
    '') echo "probe timer.s(1) { $name($arguments) }" ;;
    *) echo "probe timer.s(1) { println($name($arguments)) }" ;;
  esac
done >all.stp
declared=$(grep -ch '^function ' "$ROOT"/tapset/*.stp | paste -sd+ | xargs -I{} sh -c 'echo $(({}))')
[ "$(wc -l <all.stp)" = "$declared" ] || { echo "$declared functions are declared, $(wc -l <all.stp) are called"; exit 1; }

"$SPILE" -g -p2 -r "$RELEASE" all.stp >all.log 2>&1 || { grep -A 4 '^error' all.log; exit 1; }
echo "$declared functions resolve"
