// SPDX-License-Identifier: GPL-2.0-or-later

//! `--remote`: the script is compiled here for the kernel of another host, and run there by its spilerun, through ssh(1).
//!
//! The module is sent through standard input of a shell there, which then stays open: when it closes, because this program
//! has received a signal or is gone, the session there ends properly. Lines such as `disable 3`, which `spile top` writes to
//! the standard input of this program, go the same way.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc;
use shell_words::quote;
use spile_abi::escape;
use spile_base::programs;
use spilerun::error::Exit;
use spilerun::signals::Signals;

use super::guest;
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
        // The terminal is drawn on: nothing can be asked there.
        if has_commands() {
            ssh.args(["-o", "BatchMode=yes"]);
        }
        ssh.args(self.port.iter().flat_map(|port| ["-p", port])).args(["--", &self.name]).arg(command);
        ssh
    }
}

/// `spile top` has started this program: commands for the session come by standard input.
fn has_commands() -> bool {
    std::env::var_os(spile_replay::top::COMMANDS).is_some()
}

/// A session on another host.
struct RemoteSession {
    uri: String,
    child: Child,
    /// What is sent here goes to its standard input, which is open until this is dropped.
    open: Option<Sender<Vec<u8>>>,
    /// Sends the module, and then what comes by `open`.
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
        let (open, commands) = channel::<Vec<u8>>();
        let sent = child.stdin.take().map(|mut stdin| {
            std::thread::spawn(move || {
                stdin.write_all(&image)?;
                // It stays open as long as `open` does.
                commands.iter().try_for_each(|line| stdin.write_all(&line))
            })
        });
        Ok(RemoteSession { uri: host.uri.clone(), child, open: Some(open), sent })
    }

    /// Sends its output on as it comes.
    fn forward(&mut self, sender: SyncSender<Vec<u8>>) {
        let Some(mut stdout) = self.child.stdout.take() else { return };
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            // An error in sending means that the receiver is gone.
            while let Ok(size @ 1..) = stdout.read(&mut buffer)
                && sender.send(buffer.get(..size).unwrap_or_default().to_vec()).is_ok()
            {}
        });
    }

    /// Sends each line of its output on, with a prefix.
    fn forward_lines(&mut self, prefix: String, sender: SyncSender<Vec<u8>>) {
        let Some(stdout) = self.child.stdout.take() else { return };
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut line = prefix.clone().into_bytes();
            // Longer lines in pieces. An error in sending means that the receiver is gone.
            while reader.by_ref().take(MOST_LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0)
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
    if session.options.build.last_pass.is_some_and(|pass| pass < 5) {
        return compile_only(session, &hosts, words);
    }
    let directory = session.scratch()?;
    let mut output = Output::open(session, &hosts)?;
    let commands = commands(session, &hosts, words, directory.path())?;
    session.reporter.pass(|| "Pass 5: starting run.".to_string());
    let signals = Signals::catch().map_err(|error| session.reporter.error(error))?;
    let prefixed = session.options.run.remote_prefix;
    // Not more than this is kept for a slow reader.
    let (sender, lines) = sync_channel::<Vec<u8>>(64);
    let mut running: Vec<RemoteSession> = Vec::new();
    for (number, (host, (command, image))) in hosts.iter().zip(commands).enumerate() {
        let mut session = RemoteSession::start(host, &command, image, prefixed || output.piped)
            .map_err(|error| session.reporter.error(format!("running ssh: {error}")))?;
        match prefixed {
            true => session.forward_lines(format!("{}: ", number + 1), sender.clone()),
            false if output.recorded => session.forward(sender.clone()),
            // Those of several hosts are not mixed.
            false => session.forward_lines(String::new(), sender.clone()),
        }
        running.push(session);
    }
    drop(sender);
    let from_top = from_top();
    let well = wait_for_all(&session.reporter, running, &signals, [&lines, &from_top], &mut output);
    lines.iter().for_each(|line| output.write(&line));
    let failure = output.failure.take();
    // Waits until everything is written.
    drop(output);
    match failure {
        // As in any pipeline: the reader has closed the pipe.
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            session.reporter.error(format!("the output cannot be written: {error}; the script was ended"));
            Err(Failed(Exit::Output as u8))
        }
        _ => Ok(Outcome::Done(ExitCode::from(u8::from(!well)))),
    }
}

/// Where the output of the sessions goes; it is written here, not there.
struct Output {
    to: Box<dyn Write + Send>,
    /// Writes the format of `--format`.
    live: Option<spile_replay::Live>,
    /// What comes is a recording.
    recorded: bool,
    /// It passes through this process.
    piped: bool,
    /// Why it could not be written.
    failure: Option<std::io::Error>,
}

impl Output {
    /// Takes `-o` and `--record` from the options of the loader there, which then writes to its standard output.
    fn open(session: &mut Session, hosts: &[Host]) -> Result<Output, Failed> {
        let run = &mut session.options.run;
        let (output, recording) = (run.session.output.take(), run.session.record.take());
        let formatted = run.format.is_some_and(|format| format != spile_replay::Format::Text);
        let recorded = recording.is_some() || formatted;
        let prefixed = run.remote_prefix;
        let option = if recording.is_some() { "--record" } else { "--format" };
        if recorded && hosts.len() > 1 {
            let message = format!("{option}: a recording is of one session: give --remote once");
            return Err(session.reporter.usage(&message));
        }
        if recorded && prefixed {
            return Err(session.reporter.usage(&format!("{option} and --remote-prefix exclude each other")));
        }
        if recording.as_deref().is_some_and(|path| path == "-") && std::io::stdout().is_terminal() {
            let message = "--record -: a recording is not text for a terminal: give a file, or a pipe";
            return Err(session.reporter.usage(message));
        }
        if recorded {
            session.options.run.session.record = Some("-".into());
        }
        let live = guest::live(session, output.as_deref())?;
        let path = recording.or(output).filter(|path| path.as_os_str() != "-");
        let piped = recorded || path.is_some();
        let to: Box<dyn Write + Send> = match (&live, &path) {
            (Some(live), _) => Box::new(live.input().map_err(|error| session.reporter.error(error))?),
            (None, Some(path)) => Box::new(
                spile_base::read::create(path)
                    .map_err(|error| session.reporter.error(format!("writing {}: {error}", path.display())))?,
            ),
            (None, None) => Box::new(std::io::stdout()),
        };
        Ok(Output { to, live, recorded, piped, failure: None })
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.to.write_all(bytes).and_then(|()| self.to.flush()).err();
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.to = Box::new(std::io::sink());
        drop(self.live.take());
    }
}

/// Commands for the sessions, a line each; none if `spile top` has not started this program.
fn from_top() -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if has_commands() {
        // It waits for the next line for ever: nobody waits for it.
        std::thread::spawn(move || {
            let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(format!("{line}\n").into_bytes()))
        });
    }
    receiver
}

/// `-p1` to `-p4`: as `-r` with the release of each host.
fn compile_only(session: &Session, hosts: &[Host], words: &[OsString]) -> Result<Outcome, Failed> {
    let mut done: Vec<String> = Vec::new();
    for host in hosts {
        let release = release_of(&session.reporter, host)?;
        if done.contains(&release) {
            continue;
        }
        let mut compiler = compiler(&release, words, Path::new("."));
        match compiler.args(without_remotes(words)).stdin(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            Ok(_) => return Err(WRONG),
            Err(error) => return Err(session.reporter.error(format!("compiling for {release}: {error}"))),
        }
        done.push(release);
    }
    Ok(Outcome::Done(ExitCode::SUCCESS))
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
    [lines, from_top]: [&Receiver<Vec<u8>>; 2],
    output: &mut Output,
) -> bool {
    let (mut well, mut stops) = (true, 0);
    while !running.is_empty() {
        stops += signals.read().stops;
        for line in from_top.try_iter() {
            // An error means that the session has ended.
            running.iter().filter_map(|session| session.open.as_ref()).for_each(|open| drop(open.send(line.clone())));
        }
        if stops > 0 || output.failure.is_some() {
            running.iter_mut().for_each(|session| session.open = None);
        }
        if stops > 1 {
            // A host that does not answer; its shell ends the session when the connection is gone.
            running.iter_mut().for_each(|session| drop(session.child.kill()));
        }
        lines.try_iter().for_each(|line| output.write(&line));
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

/// Bytes of a line of another host; a longer one comes in pieces.
const MOST_LINE: u64 = 64 << 10;

/// The release of the kernel that runs on a host, which must be a machine of this kind.
fn release_of(reporter: &Reporter, host: &Host) -> Result<String, Failed> {
    let failed = |error: std::io::Error| reporter.error(format!("running ssh: {error}"));
    let mut command = host.ssh("uname -r -m");
    programs::end_with_this_thread(&mut command);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().map_err(failed)?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // What follows is not read: the pipe closes.
        stdout.take(MOST_LINE).read_to_end(&mut bytes).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let here = std::env::consts::ARCH;
    match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [release, machine] if status.success() && *machine == here => match is_release(release) {
            true => Ok(release.to_string()),
            false => Err(reporter.error(format!("{}: {} is not a kernel release", host.uri, escape::line(release)))),
        },
        [_, machine] if status.success() => {
            Err(reporter
                .error(format!("{}: a {machine} machine; only {here} can be compiled for on this host", host.uri)))
        }
        _ => Err(reporter.error(format!("{}: asking for its kernel release by ssh failed ({status})", host.uri))),
    }
}

/// This program with the first words of a compiler for another host, whose modules go to `directory`.
fn compiler(release: &str, words: &[OsString], directory: &Path) -> Command {
    let mut compiler = Command::new("/proc/self/exe");
    compiler
        .arg0(words.first().cloned().unwrap_or_default())
        .arg(MODULE_DIRECTORY)
        .arg(directory)
        .args(["-r", release])
        .env_remove(spile_replay::top::COMMANDS);
    programs::end_with_this_thread(&mut compiler);
    compiler
}

/// Compiles with the same command line, up to pass 4, in a separate process.
fn compiled_for(session: &Session, release: &str, words: &[OsString], place: &Path) -> Result<PathBuf, Failed> {
    let name = session.options.build.module.clone().unwrap_or_else(|| format!("stap_remote_{}", std::process::id()));
    let directory = place.join(release);
    std::fs::create_dir_all(&directory)
        .map_err(|error| session.reporter.error(format!("making {}: {error}", directory.display())))?;
    let mut compiler = compiler(release, words, &directory);
    compiler.args(["-p4", "-m", &name]);
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

/// The words after the program's name, without the options of this file and those that a compilation cannot have.
fn without_remotes(words: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        if text == "--" {
            kept.push(word.clone());
            kept.extend(rest.by_ref().cloned());
        } else if text == "--remote" || text == "--format" {
            rest.next();
        } else if !text.starts_with("--remote=") && !text.starts_with("--format=") && text != "--remote-prefix" {
            kept.push(word.clone());
        }
    }
    kept
}

/// The shell command there: takes the module, runs it until it ends or our end of its input is closed, with commands that come
/// meanwhile, and leaves nothing behind, also if a signal ends it: most shells do not do then what is to be done at their exit.
fn remote_script(module: &Path, bytes: usize, number: usize, host: &Host, arguments: &[String]) -> String {
    let text = |name: Option<&std::ffi::OsStr>| name.unwrap_or_default().to_string_lossy().into_owned();
    let (name, loaded) = (text(module.file_name()), text(module.file_stem()));
    let words: String = arguments.iter().map(|word| format!("{} ", quote(word))).collect();
    let script = format!(
        "d=$(mktemp -d) || exit 1; trap 'rm -rf \"$d\"' EXIT; trap 'exit 143' HUP INT TERM; head -c {bytes} >\"$d/\"{name} || exit 1; exec 3<&0; PATH=$PATH:/usr/sbin:/sbin; \
         spilerun {words}-r {remote} \"$d/\"{name} 3<&- </dev/null & p=$!; \
         trap 'kill -TERM $p 2>/dev/null' HUP INT TERM; {{ while read -r a n <&3; do case $a in enable|disable) spilerun $a {loaded} \"$n\" 3<&- </dev/null;; esac; done; \
         kill -TERM $p 2>/dev/null; }} >/dev/null & w=$!; exec 3<&-; wait $p; s=$?; \
         while [ $s -gt 128 ] && kill -0 $p 2>/dev/null; do wait $p; s=$?; done; kill $w 2>/dev/null; exit $s",
        name = quote(&name),
        loaded = quote(&loaded),
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
        let words = "stap -g --remote a --remote=b --remote-prefix --format json --format=csv x.stp -- --remote c";
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        assert_eq!(without_remotes(&words), ["-g", "x.stp", "--", "--remote", "c"].map(OsString::from));
    }
}
