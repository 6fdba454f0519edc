// SPDX-License-Identifier: GPL-2.0-or-later

//! `--remote`: the script is compiled here for the kernel of another host, and run there by its spilerun, through ssh(1).
//!
//! The module is sent through standard input of a shell there, which then stays open: when it closes, because this program
//! has received a signal or is gone, the session there ends properly.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc;
use shell_words::quote;
use spile_abi::escape;
use spilerun::signals::Signals;

use crate::cli::options::Script;
use crate::outcome::Outcome;
use crate::reporter::{Failed, Reporter, WRONG};
use crate::session::Session;

/// First word of a compiler started for another host: its command line already includes the rc file's words.
pub const MODULE_DIRECTORY: &str = "--module-directory";

/// `[ssh://][USER@]HOST[:PORT]`
#[derive(Clone, Debug, PartialEq)]
struct Host {
    uri: String,
    name: String,
    port: Option<String>,
}

impl Host {
    fn parse(uri: &str) -> Result<Host, String> {
        let (name, port) = match uri.strip_prefix("ssh://").map(|rest| rest.trim_end_matches('/')) {
            Some(rest) => rest.rsplit_once(':').map_or((rest, None), |(name, port)| (name, Some(port))),
            None => (uri, None),
        };
        // A name that begins with a dash would be an option of ssh.
        let fits = !name.is_empty()
            && !name.starts_with('-')
            && !name.contains([':', '/'])
            && !name.contains(char::is_whitespace);
        let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok());
        match fits && port_fits {
            true => Ok(Host { uri: uri.to_string(), name: name.to_string(), port: port.map(str::to_string) }),
            false => Err(format!("--remote {uri}: expected [USER@]HOST or ssh://[USER@]HOST[:PORT]")),
        }
    }

    fn ssh(&self, command: &str) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(self.port.iter().flat_map(|port| ["-p", port])).args(["--", &self.name]).arg(command);
        ssh
    }
}

/// A session on another host.
struct RemoteSession {
    uri: String,
    child: Child,
    /// Its standard input is open until this is dropped.
    open: Option<Sender<()>>,
    /// Sends the module.
    sent: Option<JoinHandle<std::io::Result<()>>>,
}

impl RemoteSession {
    /// Starts ssh with `command`, and a thread that sends it the module. `piped`: its output is read by this program.
    fn start(host: &Host, command: &str, image: Vec<u8>, piped: bool) -> std::io::Result<RemoteSession> {
        let mut ssh = host.ssh(command);
        ssh.stdin(Stdio::piped()).stdout(if piped { Stdio::piped() } else { Stdio::inherit() });
        // ^C must not end ssh: the session there ends when its input does, so that its report still arrives.
        let ignore_interrupts = || {
            // SAFETY: signal(2) may be called between fork and exec.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
            Ok(())
        };
        // SAFETY: the closure calls nothing but signal(2).
        unsafe { ssh.pre_exec(ignore_interrupts) };
        let mut child = ssh.spawn()?;
        // A host that does not answer takes no data: signals are handled meanwhile.
        let (open, until) = channel::<()>();
        let sent = child.stdin.take().map(|mut stdin| {
            std::thread::spawn(move || {
                stdin.write_all(&image)?;
                // It stays open as long as `open` does.
                let _ = until.recv();
                std::io::Result::Ok(())
            })
        });
        Ok(RemoteSession { uri: host.uri.clone(), child, open: Some(open), sent })
    }

    /// Sends each line of its output on, with a prefix.
    fn forward(&mut self, prefix: String, sender: Sender<Vec<u8>>) {
        let Some(stdout) = self.child.stdout.take() else { return };
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut line = prefix.clone().into_bytes();
            // An error in sending means that the receiver is gone.
            while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0)
                && sender.send(std::mem::replace(&mut line, prefix.clone().into_bytes())).is_ok()
            {}
        });
    }

    /// Why sending the module failed; taken once.
    fn sending_failed(&mut self) -> Option<std::io::Error> {
        let sent = self.sent.take_if(|sent| sent.is_finished())?;
        sent.join().ok()?.err()
    }
}

/// Runs the script of the command line `words` (with those of the rc file) on the hosts of `--remote`.
pub(super) fn run(session: &mut Session, words: &[OsString]) -> Result<Outcome, Failed> {
    let hosts = session.options.run.remote.iter().map(|uri| Host::parse(uri)).collect::<Result<Vec<Host>, String>>();
    let hosts = hosts.map_err(|message| session.reporter.usage(&message))?;
    if session.options.script.source().is_some_and(|(script, _)| script == Script::Stdin) {
        let message = "--remote: the script cannot come from standard input: give a file or -e";
        return Err(session.reporter.usage(message));
    }
    let directory = session.scratch()?;
    // Written here, not there.
    let output = session.options.run.session.output.take();
    let commands = commands(session, &hosts, words, directory.path())?;
    session.reporter.pass(|| "Pass 5: starting run.".to_string());
    let signals = Signals::catch().map_err(|error| session.reporter.error(error))?;
    let prefixed = session.options.run.remote_prefix;
    let piped = prefixed || output.is_some();
    let mut out: Box<dyn Write + Send> = match &output {
        Some(path) => Box::new(
            spile_base::read::create(path)
                .map_err(|error| session.reporter.error(format!("writing {}: {error}", path.display())))?,
        ),
        None => Box::new(std::io::stdout()),
    };
    let (sender, lines) = channel::<Vec<u8>>();
    let mut running: Vec<RemoteSession> = Vec::new();
    for (number, (host, (command, image))) in hosts.iter().zip(commands).enumerate() {
        let mut session = RemoteSession::start(host, &command, image, piped)
            .map_err(|error| session.reporter.error(format!("running ssh: {error}")))?;
        session.forward(if prefixed { format!("{}: ", number + 1) } else { String::new() }, sender.clone());
        running.push(session);
    }
    drop(sender);
    let well = wait_for_all(&session.reporter, running, &signals, &lines, &mut out);
    lines.iter().for_each(|line| drop(out.write_all(&line)));
    let _ = out.flush();
    Ok(Outcome::Done(ExitCode::from(u8::from(!well))))
}

/// The shell command for each host, and the module to send. Compiles once for each release.
fn commands(
    session: &Session,
    hosts: &[Host],
    words: &[OsString],
    place: &Path,
) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    let arguments: Vec<String> =
        session.options.loader_words().into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut modules: HashMap<String, PathBuf> = HashMap::new();
    let mut commands = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let release = release_of(&session.reporter, host)?;
        let module = match modules.get(&release) {
            Some(module) => module.clone(),
            None => {
                let module = compiled_for(session, &release, words, place)?;
                modules.insert(release, module.clone());
                module
            }
        };
        let image = session.read_file(&module)?;
        commands.push((remote_script(&module, image.len(), number + 1, host, &arguments), image));
    }
    Ok(commands)
}

/// Waits for all sessions to end, printing their lines meanwhile. False: one of them has failed.
fn wait_for_all(
    reporter: &Reporter,
    mut running: Vec<RemoteSession>,
    signals: &Signals,
    lines: &Receiver<Vec<u8>>,
    out: &mut dyn Write,
) -> bool {
    let (mut well, mut stops) = (true, 0);
    while !running.is_empty() {
        stops += signals.read().stops;
        if stops > 0 {
            running.iter_mut().for_each(|session| session.open = None);
        }
        if stops > 1 {
            // A host that does not answer; its shell ends the session when the connection is gone.
            running.iter_mut().for_each(|session| drop(session.child.kill()));
        }
        for line in lines.try_iter() {
            // An error means that the receiver is gone.
            let _ = out.write_all(&line);
        }
        running.retain_mut(|session| match session.child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                if !status.success() {
                    if let Some(error) = session.sending_failed() {
                        reporter.remark(&format!("WARNING: sending the module to {}: {error}", session.uri));
                    }
                    reporter.remark(&format!("ERROR: {}: the session ended with {status}", session.uri));
                    well = false;
                }
                false
            }
            Err(_) => false,
        });
        std::thread::sleep(Duration::from_millis(20));
    }
    well
}

/// The release of the kernel that runs on a host, which must be a machine of this kind.
fn release_of(reporter: &Reporter, host: &Host) -> Result<String, Failed> {
    let output = host.ssh("uname -r -m").stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| reporter.error(format!("running ssh: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let here = std::env::consts::ARCH;
    match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [release, machine] if output.status.success() && *machine == here => match is_release(release) {
            true => Ok(release.to_string()),
            false => Err(reporter.error(format!("{}: {} is not a kernel release", host.uri, escape::line(release)))),
        },
        [_, machine] if output.status.success() => {
            Err(reporter
                .error(format!("{}: a {machine} machine; only {here} can be compiled for on this host", host.uri)))
        }
        _ => {
            Err(reporter
                .error(format!("{}: asking for its kernel release by ssh failed ({})", host.uri, output.status)))
        }
    }
}

/// Compiles with the same command line, up to pass 4, in a separate process.
fn compiled_for(session: &Session, release: &str, words: &[OsString], place: &Path) -> Result<PathBuf, Failed> {
    let name = session.options.build.module.clone().unwrap_or_else(|| format!("stap_remote_{}", std::process::id()));
    let directory = place.join(release);
    std::fs::create_dir_all(&directory)
        .map_err(|error| session.reporter.error(format!("making {}: {error}", directory.display())))?;
    let mut compiler = Command::new("/proc/self/exe");
    compiler
        .arg0(words.first().cloned().unwrap_or_default())
        .arg(MODULE_DIRECTORY)
        .arg(&directory)
        .args(["-r", release, "-p4", "-m", &name]);
    let status = compiler.args(without_remotes(words)).stdin(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => {
            Ok(directory.join(format!("{}.ko", name.strip_suffix(".ko").unwrap_or(&name))))
        }
        Ok(_) => Err(WRONG),
        Err(error) => Err(session.reporter.error(format!("compiling for {release}: {error}"))),
    }
}

/// The host's answer is the name of a directory here, and `-r` also accepts paths.
fn is_release(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._+~-".contains(letter))
}

/// The words after the program's name, without the options of this file.
fn without_remotes(words: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        if text == "--" {
            kept.push(word.clone());
            kept.extend(rest.by_ref().cloned());
        } else if text == "--remote" {
            rest.next();
        } else if !text.starts_with("--remote=") && text != "--remote-prefix" {
            kept.push(word.clone());
        }
    }
    kept
}

/// The shell command there: takes the module, runs it until it ends or our end of its input is closed, and leaves nothing
/// behind.
fn remote_script(module: &Path, bytes: usize, number: usize, host: &Host, arguments: &[String]) -> String {
    let name = module.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let words: String = arguments.iter().map(|word| format!("{} ", quote(word))).collect();
    let script = format!(
        "d=$(mktemp -d) || exit 1; trap 'rm -rf \"$d\"' EXIT; head -c {bytes} >\"$d/\"{name} || exit 1; exec 3<&0; PATH=$PATH:/usr/sbin:/sbin; \
         spilerun {words}-r {remote} \"$d/\"{name} 3<&- </dev/null & p=$!; \
         {{ cat <&3; kill -TERM $p; }} >/dev/null 2>&1 & w=$!; exec 3<&-; wait $p; s=$?; kill $w 2>/dev/null; exit $s",
        name = quote(&name),
        remote = quote(&format!("{number}:{}", host.uri)),
    );
    // The user's login shell there may be a different one.
    format!("exec sh -c {}", quote(&script))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read() {
        let host = |uri: &str| Host::parse(uri).map(|host| (host.name, host.port));
        assert_eq!(host("me@there"), Ok(("me@there".into(), None)));
        assert_eq!(host("ssh://me@there:2222"), Ok(("me@there".into(), Some("2222".into()))));
        assert_eq!(host("ssh://there/"), Ok(("there".into(), None)));
        for wrong in ["", "-oProxyCommand=x", "ssh://-x", "libvirt://vm", "unix:/x", "ssh://a:b", "a b"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn releases_are_no_paths_and_no_options() {
        for release in ["6.1.0-44-amd64", "5.14.0-427.el9.x86_64+debug", "6.12~rc1"] {
            assert!(is_release(release), "{release}");
        }
        for wrong in ["", "..", "../x", "/srv/linux", "-p1", "6.1;id", "6.1\x1b[m"] {
            assert!(!is_release(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_compiler_gets_the_other_words() {
        let words = ["stap", "-g", "--remote", "a", "--remote=b", "--remote-prefix", "x.stp", "--", "--remote", "c"]
            .map(OsString::from);
        assert_eq!(without_remotes(&words), ["-g", "x.stp", "--", "--remote", "c"].map(OsString::from));
    }
}
