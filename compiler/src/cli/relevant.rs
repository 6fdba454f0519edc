// SPDX-License-Identifier: GPL-2.0-or-later

//! Which options affect a module, for its key in the cache.

use spile_source::{Origin, SourceMap};
use spilerun::options::SessionOptions;

use super::options::Options;

/// The options without those that do not change the module. By default an option is relevant, so a new one is.
pub fn relevant(options: &Options, sources: &SourceMap) -> Options {
    let mut options = options.clone();
    options.build.last_pass = None;
    options.build.disable_cache = false;
    options.build.poison_cache = false;
    options.build.module_directory = None;
    options.build.debug_info = None;
    // The module in the cache has no signature.
    options.build.sign_module = None;
    options.build.sign_key = None;
    options.build.sign_cert = None;
    options.message.verbose = 0;
    options.message.color = String::new();
    options.message.time_report = None;
    options.run.guest = false;
    let session = std::mem::take(&mut options.run.session);
    // Its program can be the target of process probes without a path.
    let process = sources
        .files()
        .any(|file| file.origin == Origin::User && file.bytes.windows(7).any(|window| window == b"process"));
    if process {
        options.run.session =
            SessionOptions { command: session.command, pid: session.pid, ..SessionOptions::default() };
    }
    options
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use spile_base::cache::Key;
    use spile_kbuild::finished::{Facts, key};

    use super::*;

    fn key_of(arguments: &[&str], text: &str, numbered: bool) -> Key {
        let options = Options::try_parse_from(std::iter::once(&"spile").chain(arguments)).unwrap();
        let mut sources = SourceMap::new();
        sources.add("x.stp", text.as_bytes().to_vec(), Origin::User);
        let relevant = format!("{:?}", relevant(&options, &sources));
        key(&Facts { options: &relevant, sources: &sources, release: "6.1", build: "b", title: "x.stp", numbered })
    }

    #[test]
    fn what_decides_about_a_module() {
        let plain = key_of(&["x.stp"], "probe begin {}", true);
        for arguments in [
            &["-v", "x.stp"][..],
            &["-p4", "x.stp"],
            &["-T", "3", "x.stp"],
            &["-o", "f", "x.stp"],
            &["-c", "ls", "x.stp"],
            &["-x", "1", "x.stp"],
            &["-w", "x.stp"],
            &["--poison-cache", "x.stp"],
            &["--debug-info", "d", "x.stp"],
        ] {
            assert_eq!(key_of(arguments, "probe begin {}", true), plain, "{arguments:?}");
        }
        for arguments in [
            &["-g", "x.stp"][..],
            &["-m", "n", "x.stp"],
            &["x.stp", "1"],
            &["-DMAXERRORS=3", "x.stp"],
            &["-W", "x.stp"],
            &["--kbuild", "x.stp"],
            &["-I", "d", "x.stp"],
        ] {
            assert_ne!(key_of(arguments, "probe begin {}", true), plain, "{arguments:?}");
        }
        assert_ne!(key_of(&["x.stp"], "probe begin { }", true), plain);
        assert_ne!(key_of(&["x.stp"], "probe begin {}", false), plain);
        assert_ne!(
            key_of(&["-c", "ls", "x.stp"], "probe process.begin {}", true),
            key_of(&["-c", "w", "x.stp"], "probe process.begin {}", true)
        );
    }
}
