# Shows: an event of processes is one probe for all programs that a wildcard fits.
# stdout: ^probes 1$
# stdout: ^programs [1-9][0-9][0-9]+$
"$SPILE" -r "$RELEASE" -p3 -e 'probe process("/usr/bin/*").syscall { println(pp()) }' >text.c
sed -n 's/.*\.probe_count = \([0-9]*\),/probes \1/p; s/.*\.program_count = \([0-9]*\),/programs \1/p' text.c
