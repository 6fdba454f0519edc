// SPDX-License-Identifier: GPL-2.0-or-later

//! Tells the service manager that the session has begun (sd_notify(3), without its library).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use spile_abi::escape;

/// Sends assignments (`READY=1`) to the socket of NOTIFY_SOCKET, if there is one. It is not an error if nobody listens.
/// Newlines in a value are replaced, so that it cannot start another assignment.
pub fn send(assignments: &[&str]) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        let _ = send_to(socket.as_bytes(), &message(assignments));
    }
}

fn message(assignments: &[&str]) -> String {
    assignments.iter().map(|assignment| escape::line(assignment)).collect::<Vec<_>>().join("\n")
}

/// `@NAME` is an abstract socket.
fn send_to(socket: &[u8], state: &str) -> std::io::Result<usize> {
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(Path::new(std::ffi::OsStr::from_bytes(socket)))?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_add_an_assignment() {
        assert_eq!(
            message(&["READY=1", "STATUS=a\nMAINPID=1.stp is active"]),
            "READY=1\nSTATUS=a\\nMAINPID=1.stp is active"
        );
    }

    #[test]
    fn both_kinds_of_sockets_are_notified() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("spilerun-test-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path).unwrap();
        let by_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send_to(path.as_os_str().as_bytes(), "READY=1").unwrap();
        send_to(format!("@{name}").as_bytes(), "READY=1").unwrap();
        for socket in [by_path, by_name] {
            let mut buffer = [0; 16];
            let count = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"READY=1");
        }
        assert!(send_to(b"/no/such/socket", "READY=1").is_err());
    }
}
