# Shows: times in the time zone of the loader.
# script: zone tests/tapset/time_zone.stp
# stdout: ^all as expected$

TZ=ABC+3 start zone ready
stop
shows zone '^10800 ABC Wed Dec 31 21:00:03 1969 ABC$'
TZ=XYZ-2 start zone ready
stop
shows zone '^-7200 XYZ Thu Jan  1 02:00:03 1970 XYZ$'
[ -z "$failed" ]
echo 'all as expected'
