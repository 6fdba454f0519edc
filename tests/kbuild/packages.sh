# Kernel packages of other Debian releases, unpacked below target/headers and kept there. Sourced by tests.

kept=$ROOT/target/headers
mkdir -p "$kept"

# fetch SUITE FLAVOUR: the headers of the suite's kernel in $kept/SUITE-FLAVOUR, and for the oldest kernel also its image and
# modules.
fetch() {
	place=$kept/$1-$2
	(flock 9; fetched "$1" "$2") 9>"$kept/$1-$2.lock"
}

fetched() {
	[ "$1" = bullseye ] && last=boot || last=usr/src
	[ ! -d "$place/$last" ] || return 0
	rm -rf "$place" "$place.new"
	mkdir -p "$place.new/packages" apt/$1/state/lists/partial apt/$1/cache/archives/partial
	echo "deb http://deb.debian.org/debian $1 main" >apt/$1/sources.list
	options="-o Dir::State=$PWD/apt/$1/state -o Dir::State::status=/dev/null -o Dir::Cache=$PWD/apt/$1/cache
		-o Dir::Etc::SourceList=$PWD/apt/$1/sources.list -o Dir::Etc::SourceParts=/dev/null -o Acquire::Languages=none
		-o Acquire::Retries=3 -o APT::Architecture=amd64 -o APT::Sandbox::User=root"
	[ -f apt/$1/updated ] || apt-get $options -q update >apt/$1/log 2>&1 || { cat apt/$1/log; return 1; }
	touch apt/$1/updated
	depends() { apt-cache $options depends "$1" | sed -n "s/.*Depends: \($2\)/\1/p"; }
	headers=$(depends "linux-headers-$2-amd64" 'linux-headers-.*')
	common=$(depends "$headers" 'linux-headers-.*-common.*')
	packages="$headers $common"
	[ "$1" != bullseye ] || packages="$packages $(depends "$headers" 'linux-kbuild-.*') $(depends "linux-image-$2-amd64" 'linux-image-.*')"
	(cd "$place.new/packages" && apt-get $options -q download $packages >../log 2>&1) || { cat "$place.new/log"; return 1; }
	for package in "$place.new"/packages/*.deb; do dpkg-deb -x "$package" "$place.new" || return 1; done
	rm -rf "$place.new/packages"
	mv "$place.new" "$place"
}
