// SPDX-License-Identifier: GPL-2.0-or-later

//! The gate for the writes of a guru script: `--dry-run`, `--expires`, `--rewrites`, `--only`; and its change while the
//! module runs (`spilerun observe NAME`, `spilerun enforce NAME`).

use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::time::{ClockId, clock_gettime};
use spile_abi::device::{ENFORCE, GATE_SCOPES, Gate, GateState, OBSERVE, Verdict};

use crate::host::accounts;

/// Writes reported by a message; later ones are only counted.
pub const REPORTED_WRITES: u32 = 10;
const NS_PER_S: u64 = 1_000_000_000;
const CGROUPS: &str = "/sys/fs/cgroup";

/// `--only KIND=VALUE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Tasks of this user.
    Uid(u32),
    /// Tasks of this group.
    Gid(u32),
    /// This process.
    Pid(u32),
    /// Below /sys/fs/cgroup.
    Cgroup(PathBuf),
}

/// The options that restrict the script's writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateOptions {
    /// Writes are counted but not done (`--dry-run`).
    pub dry_run: bool,
    /// Allow that despite embedded C in the script.
    pub harmless_c: bool,
    /// CLOCK_REALTIME, nanoseconds.
    pub expires: Option<u64>,
    /// Maximum number of writes a second (`--rewrites`); `None`: no limit.
    pub per_second: Option<u32>,
    /// Contexts in which writes are done (`--only`); empty: all.
    pub only: Vec<Scope>,
}

impl GateOptions {
    /// Whether no option restricts the script's writes.
    pub fn is_none(&self) -> bool {
        *self == GateOptions::default()
    }

    /// The gate for the module. The error is the message about an invalid scope.
    pub fn gate(&self) -> Result<Gate, String> {
        let mut gate = Gate {
            mode: if self.dry_run { OBSERVE } else { ENFORCE },
            per_second: self.per_second.unwrap_or(0),
            expires: self.expires.unwrap_or(0),
            tell: REPORTED_WRITES,
            ..Gate::default()
        };
        for scope in &self.only {
            let put = |list: &mut [u32], count: &mut u32, value: u32| put_scope(list, count, value);
            match scope {
                Scope::Uid(uid) => put(&mut gate.uids, &mut gate.uid_count, *uid)?,
                Scope::Gid(gid) => put(&mut gate.gids, &mut gate.gid_count, *gid)?,
                Scope::Pid(pid) if !Path::new("/proc").join(pid.to_string()).exists() => {
                    return Err(format!("--only pid={pid}: there is no such process"));
                }
                Scope::Pid(pid) => put(&mut gate.pids, &mut gate.pid_count, *pid)?,
                Scope::Cgroup(path) => put_scope(&mut gate.cgroups, &mut gate.cgroup_count, cgroup_id(path)?)?,
            }
        }
        Ok(gate)
    }
}

fn put_scope<T>(list: &mut [T], count: &mut u32, value: T) -> Result<(), String> {
    let place = list.get_mut(*count as usize).ok_or_else(|| format!("--only: no more than {GATE_SCOPES} of a kind"))?;
    *place = value;
    *count += 1;
    Ok(())
}

/// The kernel's id of a cgroup is its directory's inode number (cgroup2, 64 bits; since 5.5).
fn cgroup_id(path: &Path) -> Result<u64, String> {
    let path = Path::new(CGROUPS).join(path.strip_prefix("/").unwrap_or(path));
    let wrong = |why: String| format!("--only cgroup={}: {why}", path.display());
    let status = std::fs::metadata(&path).map_err(|error| wrong(error.to_string()))?;
    match path.join("cgroup.procs").exists() {
        true => Ok(status.ino()),
        false => Err(wrong("is no cgroup (of version 2)".to_string())),
    }
}

/// Whether the time limit for rewriting has passed; false without one.
pub fn has_expired(gate: &Gate) -> bool {
    gate.expires > 0 && now() >= gate.expires
}

/// `uid=N`, `gid=N`, `pid=N`, `cgroup=PATH`; users and groups by name too.
pub fn parse_scope(text: &str) -> Result<Scope, String> {
    let (kind, value) = text.split_once('=').ok_or("expected KIND=VALUE")?;
    let number = || value.parse::<u32>().map_err(|_| format!("'{value}' is not known"));
    match kind {
        "uid" => accounts::user_id(value).map_or_else(number, Ok).map(Scope::Uid),
        "gid" => accounts::group_id(value).map_or_else(number, Ok).map(Scope::Gid),
        "pid" => number().map(Scope::Pid),
        "cgroup" if !value.split('/').any(|part| part == "..") => Ok(Scope::Cgroup(PathBuf::from(value))),
        _ => Err("KIND is uid, gid, pid or cgroup".to_string()),
    }
}

/// The counters by name, for `spilerun status` and the end of a session.
pub fn verdicts(state: &GateState) -> impl Iterator<Item = (&'static str, u64)> {
    VERDICTS.iter().map(|(name, verdict)| (*name, state.counts.get(*verdict as usize).copied().unwrap_or(0)))
}

const VERDICTS: [(&str, Verdict); 5] = [
    ("rewritten", Verdict::Rewritten),
    ("observed", Verdict::Observed),
    ("expired", Verdict::Expired),
    ("out_of_scope", Verdict::OutOfScope),
    ("limited", Verdict::Limited),
];

/// `rewritten 3, observed 0, ...`
pub fn counts(state: &GateState) -> String {
    let counts: Vec<String> =
        verdicts(state).map(|(name, count)| format!("{} {count}", name.replace('_', " "))).collect();
    counts.join(", ")
}

/// CLOCK_REALTIME in nanoseconds.
pub fn now() -> u64 {
    // SANITY: this clock always exists.
    let time = clock_gettime(ClockId::CLOCK_REALTIME).unwrap_or(nix::sys::time::TimeSpec::new(0, 0));
    (time.tv_sec() as u64).wrapping_mul(NS_PER_S).wrapping_add(time.tv_nsec() as u64)
}

/// Relative (`90s`, `30m`, `72h`, `7d`), or a date (`2027-01-31`, `2027-01-31T18:00`, local time). Returns nanoseconds
/// since 1970.
pub fn parse_expiry(text: &str) -> Result<u64, String> {
    let at = match text.contains('-') {
        true => parse_date(text)?,
        false => now().checked_add(parse_span(text)?).ok_or(TOO_FAR)?,
    };
    match at > now() {
        true => Ok(at),
        false => Err("has passed".to_string()),
    }
}

/// Times are nanoseconds since 1970, of 64 bits: up to the year 2554.
const TOO_FAR: &str = "too far away";

fn parse_span(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number with s, m, h or d, or a date (2027-01-31T18:00)".to_string();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text.strip_suffix(unit).unwrap_or(text).parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).and_then(|seconds| seconds.checked_mul(NS_PER_S)).ok_or_else(|| TOO_FAR.to_string())
}

fn parse_date(text: &str) -> Result<u64, String> {
    let wrong = || "a date is written as 2027-01-31 or 2027-01-31T18:00".to_string();
    let c_text = CString::new(text).map_err(|_| wrong())?;
    for format in [c"%Y-%m-%dT%H:%M", c"%Y-%m-%d"] {
        // SAFETY: an all-zero `tm` is valid.
        let mut parts: libc::tm = unsafe { std::mem::zeroed() };
        parts.tm_isdst = -1;
        // SAFETY: both strings end with a NUL; `parts` lives over the call.
        let rest = unsafe { libc::strptime(c_text.as_ptr(), format.as_ptr(), &mut parts) };
        // SAFETY: strptime returns null or a pointer into the text, which ends with a NUL.
        if rest.is_null() || unsafe { *rest } != 0 {
            continue;
        }
        // SAFETY: `parts` is initialised and lives over the call.
        if let Ok(time) = u64::try_from(unsafe { libc::mktime(&mut parts) }) {
            return time.checked_mul(NS_PER_S).ok_or_else(|| TOO_FAR.to_string());
        }
    }
    Err(wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spans_or_dates() {
        assert_eq!(parse_span("72h"), Ok(72 * 3600 * NS_PER_S));
        assert_eq!(parse_span("7d"), Ok(7 * 86_400 * NS_PER_S));
        for wrong in ["", "h", "1", "1w", "1hh", "-1h", "99999999999999d"] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
        let day = parse_date("2099-01-31").unwrap();
        assert_eq!(parse_date("2099-01-31T18:30").unwrap() - day, (18 * 3600 + 30 * 60) * NS_PER_S);
        assert!(parse_date("2099-01-31x").is_err() && parse_date("2099-13-01").is_err());
        assert_eq!(parse_date("9999-01-01"), Err(TOO_FAR.to_string()));
        assert!(parse_expiry("1999-01-01").is_err_and(|error| error == "has passed"));
        assert!(parse_expiry("1h").is_ok_and(|at| at > now() + 3590 * NS_PER_S));
    }

    #[test]
    fn scopes_are_passed_to_the_module() {
        let own = std::process::id();
        let only = ["uid=1000", "uid=root", &format!("pid={own}")].map(|text| parse_scope(text).unwrap()).to_vec();
        let options = GateOptions { dry_run: true, per_second: Some(5), only, ..GateOptions::default() };
        let gate = options.gate().unwrap();
        assert_eq!((gate.mode, gate.per_second, gate.uid_count, gate.gid_count, gate.pid_count), (OBSERVE, 5, 2, 0, 1));
        assert_eq!((&gate.uids[..2], gate.pids[0]), (&[1000, 0][..], own));
        assert!(
            GateOptions { only: vec![Scope::Pid(u32::MAX)], ..GateOptions::default() }
                .gate()
                .is_err_and(|why| why.contains("no such process"))
        );
        let many = GateOptions { only: vec![Scope::Gid(1); GATE_SCOPES + 1], ..GateOptions::default() };
        assert!(many.gate().is_err());
        assert!(
            GateOptions { only: vec![Scope::Cgroup("no/such/group".into())], ..GateOptions::default() }.gate().is_err()
        );
        for wrong in ["uid", "uid=", "uid=no-such-user", "sid=1", "cgroup=../x", "pid=-1"] {
            assert!(parse_scope(wrong).is_err(), "{wrong}");
        }
    }
}
