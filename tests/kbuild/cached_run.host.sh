# Shows: a module from the cache runs as the first time, under the name of the new run.
# stdout: ^first spile_[0-9a-f]{12}_[0-9]{7}$
# stdout: ^second spile_[0-9a-f]{12}_[0-9]{7}$
# stdout: ^different names$
# stderr: ^Pass 4: compiled C into "spile_[0-9a-f]{12}_0000000\.ko"
# stderr: ^Pass 2-4: using cached module
# limit: 120

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
run() { "$SPILE" -r "$RELEASE" --guest -v -e 'probe begin { println(module_name()) exit() }'; }
first=$(run)
second=$(run)
echo "first $first"
echo "second $second"
[ "$first" != "$second" ] && echo 'different names'
