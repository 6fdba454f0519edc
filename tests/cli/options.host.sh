# Shows: -D defines macros for embedded C, with a warning if there is none; the last of repeated options counts; --save-module
# keeps the module; --clean-cache.
# stdout: ^defined: 42 text$
# stdout: ^warned: WARNING: -D FOO: no such limit, and the script has no C
# stdout: ^last pass: saved\.ko$
# stdout: ^named: last\.ko$
# stdout: ^cleaned$
# stdout: ^alibi: handlers print nothing, hits are counted$
# limit: 120

cp -r "$CACHE" cache
export SPILE_CACHE_DIR=$PWD/cache
cat >defines.stp <<'EOS'
function number:long () %{ /* pure */ STAP_RETURN(FOO); %}
function text:string () %{ /* pure */
#ifdef BAR
	STAP_RETURN("text");
#else
	STAP_RETURN("nothing");
#endif
%}
probe begin { printf("defined: %d %s\n", number(), text()); exit() }
EOS
"$SPILE" --guest -r "$RELEASE" -g -DFOO=6*7 -D BAR defines.stp || exit
"$SPILE" -r "$RELEASE" -p4 -m warned -DFOO -e 'probe begin { exit() }' 2>&1 >/dev/null | sed 's/^/warned: /'
echo "last pass: $("$SPILE" -r "$RELEASE" -p1 -m first -p4 -m saved -e 'probe begin { exit() }')"
"$SPILE" --guest --save-module -r "$RELEASE" -m last -e 'probe begin { exit() }' && echo "named: $(ls last.ko)"
"$SPILE" --clean-cache && echo cleaned
"$SPILE" --guest -r "$RELEASE" -D STP_ALIBI -T 2 -e 'probe timer.ms(100) { println("ran") exit() } probe begin { println("began") }' >alibi 2>&1
grep -Eq 'timer\.ms\(100\).*[1-9][0-9]*' alibi && ! grep -Eq '^(ran|began)' alibi && echo "alibi: handlers print nothing, hits are counted" || cat alibi
