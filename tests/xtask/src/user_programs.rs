// SPDX-License-Identifier: GPL-2.0-or-later

//! Builds the program of tests/fixtures/user in several ways, for probes in programs: `target/fixtures/programs/NAME`, where both
//! the compiler's tests (by `$PATH`) and guests (at the same path) find them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::fixtures::fingerprint;

/// Name and gcc's options: `user` is as distributions build programs, with debug information.
const VARIANTS: [(&str, &[&str]); 6] = [
    ("user", &["-g", "-O2"]),
    ("user_O0", &["-g", "-O0"]),
    ("user_fixed", &["-g", "-O2", "-no-pie", "-fno-pie"]),
    ("user_bare", &["-O2"]),
    ("user_split", &["-g", "-O2"]),
    ("user_stripped", &["-O2", "-rdynamic"]),
];

const LIBRARY: &str = "libuser.so";

/// A program of 32 bits, without libraries, and gcc's options.
const NARROW: [(&str, &[&str]); 3] = [
    ("user32", &["-g", "-O2", "-fno-pic", "-no-pie", "-static"]),
    ("user32_O0", &["-g", "-O0", "-fpie", "-static-pie"]),
    ("user32_split", &["-g", "-O2", "-fpie", "-static-pie"]),
];

/// One of 32 bits whose stacks are known, and gcc's options: as distributions compile, and with frame pointers only.
const NARROW_STACKS: [(&str, &[&str]); 2] = [
    ("user32_stacks", &["-g", "-O2", "-fomit-frame-pointer", "-fno-pic", "-no-pie", "-static"]),
    (
        "user32_framed",
        &["-O2", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-pic", "-no-pie", "-static"],
    ),
];

/// One of 32 bits with a library, of which machines for 64 bits have only the program that loads it.
const NARROW_LINKED: &str = "user32_linked";
const NARROW_LIBRARY: &str = "libnarrow.so";
/// The same, where the library's variables of each thread have descriptors.
const NARROW_DESCRIBED: &str = "user32_described";
const NARROW_DESCRIBED_LIBRARY: &str = "libnarrow_described.so";
const NARROW_LOADER: &str = "ld-linux32.so.2";

/// A program in C++, and gcc's options.
const SHAPES: [(&str, &str); 2] = [("shapes", "-O2"), ("shapes_O0", "-O0")];

/// One in C++ with virtual base classes, its compiler and the options.
const RHOMBUS: [(&str, &str, &[&str]); 3] = [
    ("rhombus", "g++", &["-O2", "-gdwarf-5", "-fdebug-types-section"]),
    ("rhombus_O0", "g++", &["-O0", "-gdwarf-4"]),
    ("rhombus_clang", "clang++", &["-O2", "-gdwarf-5"]),
];

/// One that throws exceptions, its compiler and the options.
const THROWS: [(&str, &str, &[&str]); 3] = [
    ("throws", "g++", &["-O2", "-pthread"]),
    ("throws_static", "g++", &["-O1", "-pthread", "-static"]),
    ("throws_clang", "clang++", &["-O2", "-pthread"]),
];

/// One of 32 and of 64 bits that looks at return addresses, and gcc's options.
const UNWINDS: [(&str, &str); 2] = [("unwinds32", "-m32"), ("unwinds64", "-m64")];

/// One with a library whose variables of each thread have descriptors, and one like it that it opens at run time; with the library's
/// options.
const EACH: &str = "each_user";
const EACH_LIBRARIES: [(&str, &[&str]); 2] = [("libeach.so", &[]), ("libeach_opened.so", &["-DLARGE=16384"])];

/// One of several files in C++, in which things have one name.
const NAMES: &str = "names";
const NAMES_TEXTS: [&str; 3] = ["names.cc", "names_gadget.cc", "names_widget.cc"];

/// One with debug information of each kind, its compiler and the options.
const DESCRIBED: [(&str, &str, &[&str]); 6] = [
    ("dw_split5", "gcc", &["-gdwarf-5", "-gsplit-dwarf"]),
    ("dw_split4", "gcc", &["-gdwarf-4", "-gsplit-dwarf", "-fdebug-types-section"]),
    (PACKED, "gcc", &["-gdwarf-5", "-gsplit-dwarf", "-fdebug-types-section"]),
    ("dw_types4", "gcc", &["-gdwarf-4", "-fdebug-types-section", "-gz"]),
    ("dw_clang5", "clang", &["-gdwarf-5"]),
    ("dw_clang4", "clang", &["-gdwarf-4", "-gsplit-dwarf"]),
];

/// The one whose files with units are put into a package.
const PACKED: &str = "dw_package5";

/// One of two files in C that have things of one name.
const UNITS: &str = "units";
const UNITS_TEXTS: [&str; 2] = ["units.c", "units_other.c"];

/// One that takes calls away from their returns, one whose memory is not there, one whose functions are called on several paths.
const PLAIN: [&str; 3] = ["abuse", "absent", "chain"];

/// One whose addresses and build-id are known before it is compiled, and gcc's options.
const PINNED: (&str, &[&str]) = (
    "pinned",
    &[
        "-g",
        "-O2",
        "-no-pie",
        "-fno-pie",
        "-Wl,--section-start=.pinned=0x600000",
        "-Wl,--build-id=0x70696e6e65642070726f6772616d206f66207465",
    ],
);

/// What the bench probes.
pub const HITS: &str = "hits";

/// Those in Rust; their debug information, with that of the standard library, is in a file that guests need not have.
const RUST: [&str; 3] = ["bank", "ledger", "panics"];

/// Where the programs are.
pub fn directory(root: &Path) -> PathBuf {
    root.join("target/fixtures/programs")
}

/// Names of all programs.
pub fn names() -> impl Iterator<Item = &'static str> {
    VARIANTS
        .iter()
        .map(|(name, _)| *name)
        .chain(SHAPES.map(|(name, _)| name))
        .chain(NARROW.map(|(name, _)| name))
        .chain(NARROW_STACKS.map(|(name, _)| name))
        .chain(PLAIN)
        .chain(RUST)
        .chain(DESCRIBED.map(|(name, ..)| name))
        .chain(RHOMBUS.map(|(name, ..)| name))
        .chain(THROWS.map(|(name, ..)| name))
        .chain(UNWINDS.map(|(name, _)| name))
        .chain([NARROW_LINKED, NARROW_DESCRIBED, NAMES, UNITS, PINNED.0, EACH])
}

/// Libraries of programs of 32 bits, what loads them, and what is opened at run time: others are found with their programs.
pub fn libraries() -> [&'static str; 4] {
    [NARROW_LIBRARY, NARROW_DESCRIBED_LIBRARY, NARROW_LOADER, EACH_LIBRARIES[1].0]
}

/// What loads a 32-bit program with libraries: 2.5 MB to download. Its package is not installed: library names with wildcards, as
/// in scripts that tests build, would mean 32-bit ones, too.
fn narrow_loader(directory: &Path) -> Result<()> {
    let scratch = tempfile::tempdir_in(directory)?;
    run(Command::new("apt-get").args(["-qq", "download", "libc6-i386"]).current_dir(scratch.path()))?;
    let package = fs::read_dir(scratch.path())?.next().context("apt-get has downloaded nothing")??.path();
    let files = scratch.path().join("files");
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&files))?;
    fs::copy(files.join("lib32/ld-linux.so.2"), directory.join(NARROW_LOADER))?;
    Ok(())
}

/// Builds missing programs, or all if a source has changed. Returns the directory.
pub fn build(root: &Path) -> Result<PathBuf> {
    let source = root.join("tests/fixtures/user");
    let hits = root.join("tests/fixtures/hits/hits.c");
    let narrow = ["narrow.c", "narrow_stacks.c", "narrow_library.c", "narrow_linked.c"];
    let texts =
        ["user.c", "library.c", "abuse.c", "absent.c", "chain.c", "shapes.cc", "bank.rs", "ledger.rs", "names.h"]
            .into_iter()
            .chain(["described.c", "rhombus.cc", "each.c", "each_user.c", "panics.rs", "throws.cc", "unwinds.c"])
            .chain(NAMES_TEXTS)
            .chain(UNITS_TEXTS)
            .chain(narrow);
    let texts = texts.map(|name| fs::read(source.join(name)));
    let mut parts =
        texts.chain([fs::read(&hits)]).collect::<Result<Vec<_>, _>>().context("reading tests/fixtures/user")?;
    parts.push(
        format!(
            "{PINNED:?}{VARIANTS:?}{SHAPES:?}{NARROW:?}{NARROW_STACKS:?}{NARROW_LOADER:?}{DESCRIBED:?}{RHOMBUS:?}\
            {EACH_LIBRARIES:?}{NARROW_DESCRIBED:?}{THROWS:?}{RUST:?}{UNWINDS:?}"
        )
        .into_bytes(),
    );
    let directory = directory(root);
    // They have its path: those of a tree that was copied would look for their loader in the other one.
    parts.push(directory.as_os_str().as_encoded_bytes().to_vec());
    let key = format!("{:016x}", fingerprint(&parts));
    let stamp = directory.join("key");
    if fs::read_to_string(&stamp).is_ok_and(|known| known == key) {
        return Ok(directory);
    }
    fs::create_dir_all(&directory)?;
    let gcc = |options: &[&str], source: &Path, made: &str, rest: &[&str]| -> Result<()> {
        let mut gcc = Command::new("gcc");
        gcc.args(["-pthread", "-Wl,--build-id=sha1", "-o"]).arg(directory.join(made));
        run(gcc.args(options).arg(source).args(rest).current_dir(&directory))
    };
    gcc(&["-g", "-O2", "-shared", "-fPIC"], &source.join("library.c"), LIBRARY, &[])?;
    for (name, options) in VARIANTS {
        gcc(options, &source.join("user.c"), name, &["-L.", "-luser", "-Wl,-rpath,$ORIGIN", "-Wl,-z,lazy"])?;
    }
    for name in PLAIN {
        gcc(&["-g", "-O2"], &source.join(format!("{name}.c")), name, &[])?;
    }
    gcc(PINNED.1, &source.join("chain.c"), PINNED.0, &[])?;
    gcc(&["-g", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"], &hits, HITS, &[])?;
    let narrow = NARROW.iter().map(|(name, options)| (*name, *options, "narrow.c"));
    let stacks = NARROW_STACKS.iter().map(|(name, options)| (*name, *options, "narrow_stacks.c"));
    for (name, options, text) in narrow.chain(stacks) {
        let alone = ["-m32", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-Wl,--build-id=sha1", "-o", name];
        run(Command::new("gcc")
            .arg("-fno-optimize-sibling-calls")
            .args(alone)
            .args(options)
            .arg(source.join(text))
            .current_dir(&directory))?;
    }
    let linked = |options: &[&str], text: &str, made: &str, library: &[&str]| {
        let alone = ["-m32", "-g", "-O2", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-Wl,--build-id=sha1"];
        let mut gcc = Command::new("gcc");
        gcc.args(alone).args(options).args(["-o", made]).arg(source.join(text)).args(library);
        run(gcc.current_dir(&directory))
    };
    linked(&["-shared", "-fPIC", "-ftls-model=initial-exec"], "narrow_library.c", NARROW_LIBRARY, &[])?;
    // The dynamic linker dereferences the DT_PLTGOT, which such a library lacks, to resolve descriptors later.
    let described = ["-shared", "-fPIC", "-mtls-dialect=gnu2", "-Wl,-Bsymbolic", "-Wl,-z,now"];
    linked(&described, "narrow_library.c", NARROW_DESCRIBED_LIBRARY, &[])?;
    narrow_loader(&directory)?;
    let loader = format!("-Wl,--dynamic-linker={}", directory.join(NARROW_LOADER).display());
    for (name, library) in [(NARROW_LINKED, "-lnarrow"), (NARROW_DESCRIBED, "-lnarrow_described")] {
        let library = ["-L.", library, "-Wl,-rpath,$ORIGIN", "-Wl,-z,lazy", &loader];
        linked(&["-fno-pic", "-no-pie"], "narrow_linked.c", name, &library)?;
    }
    let objcopy = |options: &[&str]| run(Command::new("objcopy").args(options).current_dir(&directory));
    for (name, level) in SHAPES {
        let mut cxx = Command::new("g++");
        cxx.args(["-g", level, "-Wl,--build-id=sha1", "-o", name]).arg(source.join("shapes.cc"));
        run(cxx.current_dir(&directory))?;
    }
    let mut cxx = Command::new("g++");
    cxx.args(["-g", "-O2", "-Wl,--build-id=sha1", "-o", NAMES]).args(NAMES_TEXTS.map(|name| source.join(name)));
    run(cxx.current_dir(&directory))?;
    let mut units = Command::new("gcc");
    units.args(["-g", "-O2", "-Wl,--build-id=sha1", "-o", UNITS]).args(UNITS_TEXTS.map(|name| source.join(name)));
    run(units.current_dir(&directory))?;
    for name in RUST {
        let mut rustc = Command::new("rustc");
        rustc.args(["-g", "-O", "--edition=2021", "-Clink-arg=-Wl,--build-id=sha1", "-o", name]);
        run(rustc.arg(source.join(format!("{name}.rs"))).current_dir(&directory))?;
    }
    for (name, compiler, options) in DESCRIBED {
        let mut command = Command::new(compiler);
        command.args(["-O2", "-Wl,--build-id=sha1", "-o", name]).args(options).arg(source.join("described.c"));
        run(command.current_dir(&directory))?;
    }
    for (name, compiler, options) in RHOMBUS {
        let mut command = Command::new(compiler);
        command.args(["-Wl,--build-id=sha1", "-o", name]).args(options).arg(source.join("rhombus.cc"));
        run(command.current_dir(&directory))?;
    }
    for (name, compiler, options) in THROWS {
        let mut command = Command::new(compiler);
        command.args(["-g", "-fnon-call-exceptions", "-Wl,--build-id=sha1", "-o", name]).args(options);
        run(command.arg(source.join("throws.cc")).current_dir(&directory))?;
    }
    for (name, width) in UNWINDS {
        let alone = ["-nostdlib", "-ffreestanding", "-fno-stack-protector", "-static", "-no-pie", "-fno-pic"];
        let mut gcc = Command::new("gcc");
        gcc.args([width, "-g", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id=sha1", "-o", name]).args(alone);
        run(gcc.arg(source.join("unwinds.c")).current_dir(&directory))?;
    }
    for (name, options) in EACH_LIBRARIES {
        let options = [&["-g", "-O2", "-shared", "-fPIC", "-mtls-dialect=gnu2", "-Wl,-Bsymbolic"], options].concat();
        gcc(&options, &source.join("each.c"), name, &[])?;
    }
    gcc(&["-g", "-O2"], &source.join("each_user.c"), EACH, &["-L.", "-leach", "-Wl,-rpath,$ORIGIN"])?;
    let units = format!("{PACKED}-described.dwo");
    run(Command::new("llvm-dwp").args(["-o", &format!("{PACKED}.dwp"), &units]).current_dir(&directory))?;
    fs::remove_file(directory.join(units))?;
    let split = |name: &str| -> Result<()> {
        let debug = format!("{name}.debug");
        objcopy(&["--only-keep-debug", name, &debug])?;
        objcopy(&["--strip-all", &format!("--add-gnu-debuglink={debug}"), name])
    };
    split("user_split")?;
    split("user32_split")?;
    RUST.into_iter().try_for_each(split)?;
    objcopy(&["--strip-all", "user_stripped"])?;
    fs::write(&stamp, key)?;
    Ok(directory)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
