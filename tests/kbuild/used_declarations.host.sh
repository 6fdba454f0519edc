# Shows: of the runtime's headers the compiler gets all that scripts need: none is compiled a second time with the whole headers,
# which -v would say.
# stdout: ^[3-9][0-9] scripts, 0 compiled twice$
# limit: 121

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
for script in "$ROOT"/examples/*.stp; do
	"$SPILE" -r "$RELEASE" -v -p4 -m used "$script" 2>&1 >/dev/null | grep '^Pass 4: compiled C' || echo "$script"
done >said
echo "$(grep -c '^Pass 4' said) scripts, $(grep -c 'compiled twice' said) compiled twice"
grep -v '^Pass 4' said || true
