//! Those units of runtime-c that also compile in user space (format.c, pretty.c, text.c) against their expectations.
//!
//! Compiled here with address and undefined-behaviour sanitizers; a case that differs is named in the output.

use std::path::Path;
use std::process::Command;

#[test]
fn units_of_the_runtime_give_the_expected_text() {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("abi lies in runtime-c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime-units");
    let compiled = Command::new("cc")
        .args(["-g", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"])
        .arg("-fsanitize=address,undefined")
        .arg("-o")
        .arg(&program)
        .args(["tests/units.c", "format.c", "pretty.c", "text.c"].map(|file| runtime.join(file)))
        .output()
        .expect("running cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let ran = Command::new(&program).output().expect("running the units");
    let output = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success() && output.is_empty(), "{}", String::from_utf8_lossy(&output));
}
