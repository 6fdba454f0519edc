# Shows: the runtime, with the features that its compile probes find, compiles against the headers of the oldest kernel served, of
# newer ones and of PREEMPT_RT, without a warning, and uses nothing that the kernel does not export. The packages are fetched
# once, into target/headers.
# stdout: ^5\.10 cloud: compiles$
# stdout: ^6\.1 rt: compiles$
# stdout: ^6\.12 cloud: compiles$
# stdout: ^6\.12 rt: compiles$
# stdout: ^newest cloud: compiles$
# limit: 300

. "$ROOT/tests/kbuild/packages.sh"
PATH=$COMPILE_ONCE:$PATH

# compile NAME SUITE FLAVOUR
compile() {
	fetch "$2" "$3" || { echo "$1: the headers cannot be fetched"; return; }
	common=$(echo "$kept/$2-$3"/usr/src/linux-headers-*-common*) own=$(echo "$kept/$2-$3"/usr/src/linux-headers-*-"$3"-amd64)
	made=$PWD/$2-$3
	mkdir -p "$made"
	# Kernels are compiled by newer compilers than this machine has.
	echo '#undef CONFIG_CC_HAS_TYPEOF_UNQUAL' >"$made/compiler.h"
	set -- "$1" -nostdinc -std=gnu11 -O2 -m64 -mcmodel=kernel -mno-red-zone -mno-sse -mno-mmx -mno-sse2 -mno-3dnow -mno-avx -mno-80387 \
		-fno-PIE -fno-strict-aliasing -fno-common -fshort-wchar -funsigned-char -fms-extensions -fcf-protection=branch -fno-jump-tables \
		-mindirect-branch=thunk-extern -mindirect-branch-register -isystem "$(gcc -print-file-name=include)" -Wall -Wno-main -Werror=implicit-function-declaration
	for directory in arch/x86/include include arch/x86/include/uapi include/uapi; do set -- "$@" "-I$common/$directory"; done
	for directory in arch/x86/include/generated include arch/x86/include/generated/uapi include/generated/uapi; do
		set -- "$@" "-I$own/$directory"
	done
	[ ! -f "$common/include/linux/compiler-version.h" ] || set -- "$@" -include "$common/include/linux/compiler-version.h"
	set -- "$@" -include "$common/include/linux/kconfig.h" -include "$made/compiler.h" -include "$common/include/linux/compiler_types.h" \
		-D__KERNEL__ -DMODULE -DCC_USING_FENTRY '-DKBUILD_MODNAME="spile"' '-DKBUILD_MODFILE="spile"' '-DKBUILD_BASENAME="probe"' \
		-D__KBUILD_MODNAME=kmod_spile "-I$ROOT/runtime-c" "-I$made"
	name=$1
	shift
	sh "$ROOT/runtime-c/features.sh" "$ROOT/runtime-c/features" gcc "$@" >"$made/spile_features.h" || return
	status=0
	gcc "$@" -O1 -c -o "$made/runtime.o" "$ROOT/runtime-c/runtime.c" >"$made/log" 2>&1 || status=$?
	# It has headers of its own.
	gcc "$@" -O1 -c -o "$made/embedded.o" "$ROOT/runtime-c/reference/embedded.c" >>"$made/log" 2>&1 || status=$?
	# Warnings in the kernel's own headers do not count.
	grep -E 'runtime-c/.*(error|warning): ' "$made/log" >"$made/complaints" || true
	# What modules may not use, except for what else a module of spile has.
	if [ $status -eq 0 ]; then
		nm -u "$made/runtime.o" | awk '{ print $2 }' | grep -vxE '__this_module|spile_script' | sort >"$made/used"
		awk '{ print $2 }' "$own/Module.symvers" | sort | comm -23 "$made/used" - | sed 's/$/ is not exported/' >>"$made/complaints"
	fi
	if [ $status -eq 0 ] && [ ! -s "$made/complaints" ]; then
		echo "$name: compiles"
	else
		echo "$name: status $status"
		cat "$made/complaints" "$made/log" | head -n 20
		echo "features: $(sed 's/#define SPILE_HAVE_\(.*\) 1/\1/' "$made/spile_features.h" | tr '\n' ' ')"
	fi
}

compile '5.10 cloud' bullseye cloud
compile '6.1 rt' bookworm rt
compile '6.12 cloud' trixie cloud
compile '6.12 rt' trixie rt
compile 'newest cloud' trixie-backports cloud
