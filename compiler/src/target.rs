// SPDX-License-Identifier: GPL-2.0-or-later

//! Which kernel a script is for, and how far the passes can go for it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use spile_base::cache::Cache;
use spile_core::probe::OwnProcess;
use spile_debuginfo::target::{Kernel, Programs, SearchOptions, Servers, of_other_releases, releases_below};

use crate::cli::options::Options;
use crate::reporter::{Failed, Reporter};

/// The kernel that a script is compiled for.
pub struct Target {
    /// As `uname -r` prints it.
    pub release: String,
    /// None: nothing of it is installed here. Scripts that need no kernel can still be examined.
    pub kernel: Option<Kernel>,
    /// Programs and libraries that scripts name.
    pub programs: Programs,
}

impl Target {
    /// The kernel of `-r`, `--index` or `--guest`; otherwise the running one.
    pub fn choose(options: &Options, reporter: &Reporter) -> Result<Target, Failed> {
        let release = release(options, reporter)?;
        let kernel = open(options, reporter, &release)?;
        // `-r` may have given a build tree.
        let release = kernel.as_ref().map_or(release, |kernel| kernel.release().to_string());
        warn_of_other_releases(&options.kernel.files(), reporter, &release);
        Ok(Target { release, kernel, programs: programs(options, reporter) })
    }

    /// The directory of the kernel's build, with its configuration and headers.
    pub fn build_dir(&self) -> PathBuf {
        let standard = || Path::new("/lib/modules").join(&self.release).join("build");
        self.kernel.as_ref().map_or_else(standard, Kernel::build_dir)
    }
}

/// Says which files of `-d` are modules of another kernel than `release`. They are used: kernels with symbol versions may take
/// such a module.
pub fn warn_of_other_releases(files: &[PathBuf], reporter: &Reporter, release: &str) {
    for (path, built) in of_other_releases(files, release) {
        reporter.notice(&format!(
            "WARNING: -d {} was built for kernel {built}, not for {release}: its functions and types are used, but {release} may refuse to load it; -r RELEASE chooses the kernel",
            path.display()
        ));
    }
}

/// The release of the running kernel; empty if uname(2) fails.
pub fn running_release() -> String {
    nix::sys::utsname::uname().map_or_else(|_| String::new(), |name| name.release().to_string_lossy().into_owned())
}

/// Where to look for a kernel's files.
pub fn search(options: &Options) -> SearchOptions {
    SearchOptions {
        sysroot: options.kernel.sysroot.clone(),
        modules: options.kernel.files(),
        own_modules_first: options.ask.kernels.len() > 1,
        ..SearchOptions::default()
    }
}

/// Programs and libraries in user space, of this system or that of `--sysroot`.
pub fn programs(options: &Options, reporter: &Reporter) -> Programs {
    let cache = Cache::open(&options.build.cache_settings());
    Programs::new(search(options))
        .with_cache(cache)
        .with_servers(servers(options, reporter))
        .with_index(options.kernel.index.clone())
}

/// The session's own process: the command of `-c`, or the process of `-x`. None without either.
pub fn own_process(options: &Options, programs: &Programs) -> Option<OwnProcess> {
    let session = &options.run.session;
    if let Some(pid) = session.pid {
        let pid = pid.into();
        return Some(OwnProcess { program: programs.of_process(pid).map_err(Rc::new), pid: Some(pid) });
    }
    let program = programs.find(&program_word(session.command.as_ref()?)?);
    Some(OwnProcess { program: program.map_err(Rc::new), pid: None })
}

/// The word of a shell's command that names the first program it runs, without quotes: not an assignment before it, not
/// `exec`. None: the command has no such word.
fn program_word(command: &str) -> Option<String> {
    let mut words = quoted_words(command).into_iter();
    while let Some(word) = words.next() {
        if word.trim_start_matches(|letter: char| letter.is_ascii_digit()).starts_with(REDIRECTIONS) {
            words.next();
        } else if !is_assignment(&word) && !NO_PROGRAMS.contains(&word.as_str()) {
            // What a shell would refuse is taken as it is written: the shell will say so.
            let plain = shell_words::split(&word).ok().and_then(|plain| plain.into_iter().next());
            return Some(plain.unwrap_or(word));
        }
    }
    None
}

const REDIRECTIONS: [char; 2] = ['<', '>'];
/// Words before the one that names a program.
const NO_PROGRAMS: [&str; 6] = ["exec", "!", "{", "(", ";", "&"];

/// The words of a command with their quotes; operators, and redirections with their numbers, are words of their own.
fn quoted_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    // The letter before was a backslash; an operator.
    let (mut escaped, mut behind_operator) = (false, false);
    for letter in command.chars() {
        let is_plain = quote.is_none() && !escaped;
        let is_operator = is_plain && "<>;&|()".contains(letter);
        let last = words.last().map(String::as_str).unwrap_or_default();
        let is_number = !last.is_empty() && last.bytes().all(|digit| digit.is_ascii_digit());
        let redirects = matches!(letter, '<' | '>');
        let continues = if is_operator {
            behind_operator && last.ends_with(REDIRECTIONS) || redirects && is_number
        } else {
            !behind_operator
        };
        if !continues || is_plain && letter.is_whitespace() {
            words.push(String::new());
        }
        match (letter, quote) {
            _ if escaped => {}
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if open == letter => quote = None,
            _ => {}
        }
        escaped = letter == '\\' && !escaped && quote != Some('\'');
        behind_operator = is_operator;
        if let Some(last) = words.last_mut().filter(|_| !(is_plain && letter.is_whitespace())) {
            last.push(letter);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_')
    })
}

/// Gives `kernel` the cache, and the debuginfod servers that may be asked.
pub fn equipped(kernel: Kernel, options: &Options, reporter: &Reporter) -> Kernel {
    kernel.with_cache(Cache::open(&options.build.cache_settings())).with_servers(servers(options, reporter))
}

fn servers(options: &Options, reporter: &Reporter) -> Option<Servers> {
    let wanted = options.kernel.download_debuginfo.as_deref() != Some("no");
    if wanted { Servers::from_environment(reporter.progress_text()) } else { None }
}

/// The pass to stop after. For a kernel that is not the running one only compiling is possible; a host that cannot load
/// modules is detected before compiling.
pub fn last_pass(options: &Options, reporter: &Reporter) -> Result<u8, Failed> {
    let asked = options.build.last_pass.unwrap_or(5);
    if options.ask.only_asks() {
        return Ok(asked);
    }
    let indexed = options.kernel.index.as_ref().filter(|_| asked == 5);
    let indexed = indexed.and_then(|index| Kernel::from_index(index, search(options)).ok());
    let named = indexed.as_ref().map(Kernel::release).or(options.kernel.release.as_deref());
    let foreign = named.is_some_and(|release| release != running_release());
    if asked == 5 && foreign && !options.run.guest {
        if options.build.last_pass.is_some() {
            let message = "-p5 with -r or --index: the module can only run on the kernel it is compiled for; --guest runs it in a guest of that kernel";
            return Err(reporter.usage(message));
        }
        reporter.remark("WARNING: kernel release is not the running one: stopping after pass 4; --guest runs the script in a guest of it");
        return Ok(4);
    }
    if asked == 5 && !options.run.guest {
        check_host(reporter)?;
    }
    Ok(asked)
}

/// Fails where the module could not be loaded by this user into this kernel.
fn check_host(reporter: &Reporter) -> Result<(), Failed> {
    let guest = "spile --guest ... runs the same script in a throw-away guest of an installed kernel".to_string();
    if !Path::new("/proc/modules").exists() {
        return Err(reporter.fail("this kernel cannot load modules (CONFIG_MODULES is not set)", &[guest]));
    }
    if !nix::unistd::geteuid().is_root() {
        let sudo = "run it as root, or compile it with -p4 and let root run spilerun".to_string();
        return Err(reporter.fail("loading a module takes root", &[sudo, guest]));
    }
    Ok(())
}

/// The argument of `-r`, or the release of the kernel that is used without it.
fn release(options: &Options, reporter: &Reporter) -> Result<String, Failed> {
    if let Some(release) = &options.kernel.release {
        return Ok(release.clone());
    }
    if options.run.guest {
        let kernel = spile_guest::Kernel::newest();
        return kernel.map(|kernel| kernel.release.clone()).map_err(|error| reporter.error(error));
    }
    let running = running_release();
    // The index contains the release.
    if options.kernel.index.is_some() {
        return Ok(running);
    }
    // A host whose own kernel has no packages (a container, a micro-VM) can still compile for one that is installed.
    if !Path::new("/lib/modules").join(&running).is_dir()
        && (options.ask.only_asks() || options.build.last_pass.is_some_and(|pass| pass < 5))
        && let Ok(kernel) = spile_guest::Kernel::newest()
        && options.kernel.sysroot.as_ref().is_none_or(|root| releases_below(root).contains(&kernel.release))
    {
        reporter.remark(&format!(
            "NOTE: kernel {running} is not installed here: {} {}; -r RELEASE chooses",
            if options.ask.only_asks() { "looking at" } else { "compiling for" },
            kernel.release
        ));
        return Ok(kernel.release.clone());
    }
    Ok(running)
}

/// None: nothing of the kernel is installed, and it was not named.
fn open(options: &Options, reporter: &Reporter, release: &str) -> Result<Option<Kernel>, Failed> {
    if let Some(index) = &options.kernel.index {
        return Kernel::from_index(index, search(options))
            .map(Some)
            .map_err(|error| reporter.fail(&error, &error.notes()));
    }
    match Kernel::open(release, search(options)) {
        Ok(kernel) => Ok(Some(equipped(kernel, options, reporter))),
        Err(error) if options.kernel.release.is_some() => Err(reporter.fail(&error, &error.notes())),
        Err(_) => {
            options.kernel.sysroot.as_ref().map_or(Ok(None), |root| no_kernel_below(root, release, options, reporter))
        }
    }
}

/// For listings, and passes that build nothing, a `--sysroot` may have programs only. Nothing is built for a kernel that is
/// not in it: it would be this system's.
fn no_kernel_below(
    root: &Path,
    release: &str,
    options: &Options,
    reporter: &Reporter,
) -> Result<Option<Kernel>, Failed> {
    if options.ask.only_asks() || options.build.last_pass.is_some_and(|pass| pass < 3) {
        return Ok(None);
    }
    let note = match releases_below(root).as_slice() {
        [] => "neither lib/modules nor usr/lib/debug/lib/modules below it has a kernel".to_string(),
        releases => format!("it has {}: name one with -r", releases.join(", ")),
    };
    Err(reporter.fail(format!("--sysroot {}: kernel {release} is not in it", root.display()), &[note]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_command() {
        for (command, program) in [
            ("./a b", Some("./a")),
            ("'./my program' b", Some("./my program")),
            ("\"./a\" | sort", Some("./a")),
            ("A=1 B_2='x y' ./a", Some("./a")),
            ("exec ./a; ./b", Some("./a")),
            ("./a;./b", Some("./a")),
            ("./a&", Some("./a")),
            ("2>/dev/null ./a", Some("./a")),
            (">log ./a", Some("./a")),
            ("> log 2>&1 ./a", Some("./a")),
            ("<in ./a >out", Some("./a")),
            ("'./R&D/tool' x", Some("./R&D/tool")),
            ("./R\\&D x", Some("./R&D")),
            ("( ./a )", Some("./a")),
            ("(./a)", Some("./a")),
            ("{ ./a; }", Some("./a")),
            ("! ./a", Some("./a")),
            ("./a=b", Some("./a=b")),
            ("./a 'x", Some("./a")),
            ("  ", None),
            ("A=1", None),
        ] {
            assert_eq!(program_word(command).as_deref(), program, "{command}");
        }
    }
}
