# Shows: the unit of services has the exposure that it promises, as systemd rates it; most of its restrictions are needed for
# that; it sets SyslogLevelPrefix=no, so that a line of output that begins with <0> sets no level in the journal.
# limit: 30
# stdout: ^exposure: 3\.0$
# stdout: ^needed for it: 1[4-9] restrictions$
# stdout: ^levels in output: no$

unit=$ROOT/loader/system/spile@.service
cp "$unit" spile@x.service
# exposure FILE: fails if it is above 3.0.
exposure() { systemd-analyze security --offline=true --no-pager --threshold=30 "$1" >output; }
exposure ./spile@x.service
echo "exposure: $(sed -n 's/.*Overall exposure level for [^:]*: \([0-9.]*\) .*/\1/p' output)"
mkdir without
needed=0
for key in $(sed -n '/^CapabilityBoundingSet/,/^SystemCallFilter/s/^\([A-Za-z]*\)=.*/\1/p' "$unit" | sort -u); do
	grep -v "^$key=" "$unit" >without/spile@x.service
	exposure without/spile@x.service 2>/dev/null || needed=$((needed + 1))
done
echo "needed for it: $needed restrictions"
echo "levels in output: $(sed -n 's/^SyslogLevelPrefix=//p' "$unit")"
