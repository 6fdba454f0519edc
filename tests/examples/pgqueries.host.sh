# Shows: pgqueries in front of a real PostgreSQL in a guest: slow queries with their texts and times, and not those below the limit.
# Needs the package postgresql-15, whose server has the path in the script.
# all: yes
# stdout: ^ *[0-9]+ +[0-9]{6,} us SELECT pg_sleep\(0.3\), count\(\*\) FROM orders;$
# stdout: ^ *[0-9]+ +[0-9]{5,} us SELECT count\(\*\) FROM orders a, orders b WHERE a.note < b.note;$
# stdout: ^short ones: 0$
# absent: ERROR|FATAL|panicked
# limit: 300

bin=/usr/lib/postgresql/15/bin
"$SPILE" ask pgqueries --over 30ms -r "$RELEASE" -p4 -m pgqueries || exit 1
# The server refuses to be root.
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
chown postgres "$place"
su postgres -s /bin/sh -c "$bin/initdb -D '$place/data' -A trust --no-locale -E SQL_ASCII -N" >initdb.out 2>&1 || { cat initdb.out; exit 1; }
tar czf data.tgz -C "$place" data
share=usr/share/postgresql/15
tar czf share.tgz -C / $share/timezonesets $share/postgresql.conf.sample usr/share/zoneinfo/Etc/UTC usr/lib/postgresql/15/lib/plpgsql.so
cat >queries.sql <<'END'
CREATE TABLE orders AS SELECT n, 'note ' || n AS note FROM generate_series(1, 700) n;
SELECT pg_sleep(0.3), count(*) FROM orders;
SELECT 1;
SELECT count(*) FROM orders a, orders b WHERE a.note < b.note;
END
cat >script <<END
cd / && tar xzf /root/share.tgz && mkdir -p /home /tmp && chmod 777 /tmp /dev/shm && cd /home && tar xzf /root/data.tgz && chown -R user /home/data || exit
su user -c "$bin/postgres -D /home/data -k /tmp -c listen_addresses= -c shared_buffers=16MB" >/tmp/server 2>&1 &
for second in \$(seq 100); do
	[ ! -S /tmp/.s.PGSQL.5432 ] && kill -0 %1 || break
	sleep 1
done
[ -S /tmp/.s.PGSQL.5432 ] || { cat /tmp/server; exit 1; }
# Not by -c: probes in programs would then be hit in that command only.
spilerun /root/pgqueries.ko &
loader=\$!
until spilerun status pgqueries 2>/dev/null | grep -q '2 of 2 probes armed' || ! kill -0 \$loader; do sleep 0.1; done
$bin/psql -q -h /tmp -U postgres -d postgres -f /root/queries.sql -o /tmp/rows
kill -INT \$loader
wait \$loader
status=\$?
cat /tmp/server >&2
kill %1
exit \$status
END
files="--file pgqueries.ko --file queries.sql --file data.tgz --file share.tgz"
"$XTASK" guest --kernel "$RELEASE" $files --program $bin/postgres --program $bin/psql "$(cat script)" >out 2>err || { cat out err; exit 1; }
cat out
echo "short ones: $(grep -c 'SELECT 1' out)"
