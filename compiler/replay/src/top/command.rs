// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile top`: the loop, and the keys.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyCode, KeyEventKind, KeyModifiers};
use spile_abi::escape;
use spile_abi::say::say;

use super::state::State;
use super::view::{View, draw};
use super::{COMMANDS, globals};
use crate::read;
use crate::report;

const HELP: &str = "\
Shows a session in the terminal while it runs: hits, rates and cost of its probes, the greatest values that it prints, its output

Usage: spile top [OPTIONS] SCRIPT [ARGUMENT]...

OPTIONS are those of spile (-c, -x, -T, --guest, --remote HOST, ...). Keys: s sort, r reverse, f filter, d switch a probe off or on, space freeze,
w write a report, c clear, q or x end the session, h help.
";

/// Names of reports that are tried.
const MOST_REPORTS: u32 = 1000;
/// Between two drawings without events.
const STEP: Duration = Duration::from_millis(250);

/// The whole command; `words` follow `top`.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.collect();
    if words.is_empty() || words.first().is_some_and(|word| word == "-h" || word == "--help") {
        let _ = io::stdout().write_all(HELP.as_bytes());
        return ExitCode::from(u8::from(words.is_empty()));
    }
    match run(&words) {
        Ok(status) => status,
        Err(message) => {
            say(&format!("spile: top: {}\n", escape::line(&message)));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[OsString]) -> Result<ExitCode, String> {
    if !io::stdout().is_terminal() {
        return Err("it needs a terminal; spile --format or --record write to files and pipes".to_string());
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let globals = globals::script(&program, words);
    let mut command = Command::new(program);
    command.args(["--record", "-"]);
    if let Some(script) = globals {
        command.arg("-E").arg(script);
    }
    // A loader in a guest or on another host cannot be called from here.
    let elsewhere =
        |word: &OsString| word == "--guest" || word == "--remote" || word.to_string_lossy().starts_with("--remote=");
    if words.iter().any(elsewhere) {
        command.env(COMMANDS, "1").stdin(Stdio::piped());
    } else {
        command.stdin(Stdio::null());
    }
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    // ^C is a key here: it is passed on.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    end_with_this_process(&mut command);
    let mut child = command.spawn().map_err(|error| format!("running the script: {error}"))?;
    let state = Arc::new(Mutex::new(State::new()));
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let mut switches = Switches { elsewhere: child.stdin.take() };
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let readers = [
        {
            let state = Arc::clone(&state);
            std::thread::spawn(move || {
                let result = output.map(|output| read::read(output, &mut Shared(&state)));
                let mut state = lock(&state);
                state.over = true;
                if let Some(Err(error)) = result.filter(|_| !state.collected.about.is_empty()) {
                    state.line(&format!("ERROR: {error}"));
                }
            })
        },
        {
            let (state, said) = (Arc::clone(&state), Arc::clone(&said));
            std::thread::spawn(move || {
                for line in errors.map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
                    let mut state = lock(&state);
                    state.line(&line);
                    // Until the session begins, for the case that it does not.
                    if state.collected.about.is_empty() {
                        lock(&said).push(line);
                    }
                }
            })
        },
    ];
    // Whatever happens to the terminal, the session ends.
    let drawn = ratatui::try_init().and_then(|mut terminal| {
        let drawn = show(&mut terminal, &state, &mut switches);
        ratatui::restore();
        drawn
    });
    let status = end(&mut child);
    for reader in readers {
        let _ = reader.join();
    }
    // What would have been printed by the session itself, where it has not begun.
    if lock(&state).collected.about.is_empty() {
        for line in lock(&said).iter() {
            say(&format!("{}\n", escape::line(line)));
        }
    }
    // A session that a key has ended is not a failed one, whatever its command makes of the signal.
    let by_key = drawn.map_err(|error| error.to_string())?;
    Ok(ExitCode::from(if by_key { 0 } else { status }))
}

/// The session ends if the terminal is closed, which ends this process.
fn end_with_this_process(command: &mut Command) {
    use nix::sys::prctl::set_pdeathsig;
    use nix::sys::signal::Signal;
    let own = nix::unistd::getpid();
    let arrange = move || {
        set_pdeathsig(Signal::SIGINT)?;
        // It may have ended before that.
        if nix::unistd::getppid() == own { Ok(()) } else { Err(io::Error::from(io::ErrorKind::Interrupted)) }
    };
    // SAFETY: between fork and exec it makes only system calls.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, arrange) };
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events go to the state that the terminal shows.
struct Shared<'s>(&'s Mutex<State>);

impl read::Receiver for Shared<'_> {
    fn session(&mut self, session: &crate::event::Session) -> Result<(), read::ReadError> {
        lock(self.0).session(session)
    }

    fn event(
        &mut self,
        session: &crate::event::Session,
        event: &crate::event::Event<'_>,
    ) -> Result<(), read::ReadError> {
        lock(self.0).event(session, event)
    }

    fn counts(&mut self, json: &str) -> Result<(), read::ReadError> {
        lock(self.0).counts(json)
    }

    fn pause(&mut self) -> Result<(), read::ReadError> {
        Ok(())
    }
}

/// Asks the session to end, and waits for it.
fn end(child: &mut Child) -> u8 {
    interrupt(child);
    let status = child.wait().ok().and_then(|status| status.code()).unwrap_or(1);
    u8::try_from(status).unwrap_or(1)
}

fn interrupt(child: &mut Child) {
    if matches!(child.try_wait(), Ok(None)) {
        let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
        // If it has ended meanwhile, it is not reaped yet: its number is not another process's.
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT);
    }
}

/// Switches probes of the session off and on.
struct Switches {
    /// Where the process that runs it in a guest or on another host reads commands; `None`: it runs here.
    elsewhere: Option<ChildStdin>,
}

impl Switches {
    /// Switches the chosen probe; says what has been done.
    fn switch(&mut self, state: &mut State, view: &View) -> Result<String, String> {
        let shown = state.shown(view.sort, view.reverse, &view.filter);
        let Some(number) = shown.get(view.place(&shown)).map(|probe| probe.number) else {
            return Err("there is no probe".to_string());
        };
        let module = state.collected.fact("module").to_string();
        let Some(probe) = state.probes.get_mut(number) else { return Err("there is no probe".to_string()) };
        let off = !probe.off;
        if off && !probe.armed {
            return Err(format!("{} is not attached", probe.point));
        }
        self.call(&module, if off { "disable" } else { "enable" }, number)?;
        probe.off = off;
        Ok(format!("{} {}", if off { "switched off:" } else { "switched on:" }, probe.point))
    }

    fn call(&mut self, module: &str, action: &str, number: usize) -> Result<(), String> {
        if let Some(elsewhere) = &mut self.elsewhere {
            return writeln!(elsewhere, "{action} {number}").map_err(|error| error.to_string());
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut loader = Command::new(program);
        std::os::unix::process::CommandExt::arg0(&mut loader, "spilerun");
        let output = loader.args([action, module, &number.to_string()]).stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(said.lines().next().unwrap_or("it failed").to_string()) }
    }
}

/// Writes a file of a new name in the working directory, which others may be able to write to: what is there is neither replaced
/// nor followed.
fn write_new(bytes: &[u8]) -> io::Result<String> {
    for number in 1..MOST_REPORTS {
        let name = format!("spile-{}-{number}.html", std::process::id());
        match File::create_new(&name) {
            Ok(mut file) => return file.write_all(bytes).map(|()| name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{name}: {error}"))),
        }
    }
    Err(io::Error::other("all names of reports are taken here"))
}

/// Until the session cannot begin, or a key ends it: true.
fn show(terminal: &mut ratatui::DefaultTerminal, state: &Mutex<State>, switches: &mut Switches) -> io::Result<bool> {
    let mut view = View::new(std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()));
    loop {
        let (over, begun) = {
            let state = lock(state);
            if !view.frozen {
                terminal.draw(|frame| draw(frame, &state, &view))?;
            }
            (state.over, !state.collected.about.is_empty())
        };
        // A script with a mistake: its messages are printed where they stay.
        if over && !begun {
            return Ok(false);
        }
        if !event::poll(STEP)? {
            continue;
        }
        let key = match event::read()? {
            TerminalEvent::Key(key) => key,
            // What is there was laid out for another size, also where it is frozen.
            TerminalEvent::Resize(..) => {
                terminal.clear()?;
                terminal.draw(|frame| draw(frame, &lock(state), &view))?;
                continue;
            }
            _ => continue,
        };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        let was_frozen = view.frozen;
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Ok(true);
        }
        view.note.clear();
        if view.typing {
            match key.code {
                KeyCode::Enter => view.typing = false,
                KeyCode::Esc => {
                    view.typing = false;
                    view.filter.clear();
                }
                KeyCode::Backspace => drop(view.filter.pop()),
                KeyCode::Char(typed) => view.filter.push(typed),
                _ => {}
            }
        } else if view.help {
            view.help = false;
        } else {
            match key.code {
                KeyCode::Char('q' | 'x') => return Ok(true),
                KeyCode::Char('s') => view.sort = view.sort.next(),
                KeyCode::Char('r') => view.reverse = !view.reverse,
                KeyCode::Char('f' | '/') => view.typing = true,
                KeyCode::Char(' ') => view.frozen = !view.frozen,
                KeyCode::Char('h' | '?') => view.help = true,
                KeyCode::Char('c') => lock(state).lines.clear(),
                KeyCode::Char('w') => {
                    let page = report::page(&lock(state).collected, None);
                    view.note = match write_new(page.as_bytes()) {
                        Ok(name) => format!("written: {name}"),
                        Err(error) => error.to_string(),
                    };
                }
                KeyCode::Char('d') => {
                    view.note = switches.switch(&mut lock(state), &view).unwrap_or_else(|message| message);
                }
                KeyCode::Down => view.select(&lock(state), 1),
                KeyCode::Up => view.select(&lock(state), -1),
                KeyCode::PageDown => view.select(&lock(state), 10),
                KeyCode::PageUp => view.select(&lock(state), -10),
                KeyCode::Esc => view.filter.clear(),
                _ => {}
            }
        }
        // That it is frozen is still to be said.
        if view.frozen {
            let state = lock(state);
            if !was_frozen || key.code != KeyCode::Char(' ') {
                terminal.draw(|frame| draw(frame, &state, &view))?;
            }
        }
    }
}
