// SPDX-License-Identifier: GPL-2.0-or-later

//! Messages between the user part and the root part: each has [`BYTES`] bytes, and at most one descriptor.
//!
//! A kind, two numbers, and up to [`MAX_DATA`] bytes whose meaning depends on the kind; the rest is zero. All numbers are in the
//! byte order of the machine, as both ends are one program.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};

/// Size of a message in bytes.
pub const BYTES: usize = 4096;
const HEADER: usize = 4 + 4 + 8 + 8;
/// Maximum size of a message's data in bytes.
pub const MAX_DATA: usize = BYTES - HEADER;

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The request, or the kind of the answer.
    pub kind: u32,
    /// Their meaning depends on the kind.
    pub numbers: [u64; 2],
    /// At most [`MAX_DATA`] bytes; longer data is truncated.
    pub data: Vec<u8>,
}

impl Message {
    fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let data = self.data.get(..MAX_DATA).unwrap_or(&self.data);
        let length = data.len() as u32;
        let parts: [&[u8]; 5] = [
            &self.kind.to_ne_bytes(),
            &length.to_ne_bytes(),
            &self.numbers[0].to_ne_bytes(),
            &self.numbers[1].to_ne_bytes(),
            data,
        ];
        bytes.iter_mut().zip(parts.concat()).for_each(|(to, from)| *to = from);
        bytes
    }

    /// `None`: not the length of a message.
    pub fn decode(bytes: &[u8; BYTES]) -> Option<Message> {
        let (kind, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (first, rest) = rest.split_first_chunk::<8>()?;
        let (second, rest) = rest.split_first_chunk::<8>()?;
        let data = rest.get(..u32::from_ne_bytes(*length) as usize)?.to_vec();
        let numbers = [u64::from_ne_bytes(*first), u64::from_ne_bytes(*second)];
        Some(Message { kind: u32::from_ne_bytes(*kind), numbers, data })
    }

    /// Sends the message; waits for room. An error: the other end is closed.
    pub fn send(&self, line: BorrowedFd<'_>, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let bytes = self.encode();
        let descriptors: Vec<i32> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
        let control = [ControlMessage::ScmRights(&descriptors)];
        let control = if descriptors.is_empty() { &[][..] } else { &control[..] };
        loop {
            match sendmsg::<()>(line.as_raw_fd(), &[IoSlice::new(&bytes)], control, MsgFlags::MSG_NOSIGNAL, None) {
                Err(nix::errno::Errno::EINTR) => {}
                other => return Ok(other.map(drop)?),
            }
        }
    }

    /// Waits for a message. `None`: the other end is closed. An error: the data is not a message.
    pub fn receive(line: BorrowedFd<'_>) -> io::Result<Option<(Message, Option<OwnedFd>)>> {
        let mut bytes = [0; BYTES];
        let mut control = nix::cmsg_space!(i32);
        let (count, descriptor) = loop {
            let mut vectors = [IoSliceMut::new(&mut bytes)];
            match recvmsg::<()>(line.as_raw_fd(), &mut vectors, Some(&mut control), MsgFlags::MSG_CMSG_CLOEXEC) {
                Ok(received) => {
                    let mut taken = None;
                    // The kernel closes descriptors that do not fit.
                    for message in received.cmsgs()? {
                        if let ControlMessageOwned::ScmRights(descriptors) = message {
                            for number in descriptors {
                                // SAFETY: received just now, so nothing else owns it. All but the last are closed.
                                taken = Some(unsafe { OwnedFd::from_raw_fd(number) });
                            }
                        }
                    }
                    break (received.bytes, taken);
                }
                Err(nix::errno::Errno::EINTR) => {}
                Err(nix::errno::Errno::ECONNRESET) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        };
        match count {
            0 => Ok(None),
            BYTES => {
                let message = Message::decode(&bytes).ok_or(io::ErrorKind::InvalidData)?;
                Ok(Some((message, descriptor)))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Two connected ends that preserve message boundaries, closed on exec. As with any socket, an end cannot be opened by
/// name.
pub fn line() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn messages_arrive_with_their_descriptor() {
        let (one, other) = line().unwrap();
        let message = Message { kind: 7, numbers: [1, u64::MAX], data: b"name".to_vec() };
        let file = std::fs::File::open("/etc/passwd").unwrap();
        message.send(one.as_fd(), Some(file.as_fd())).unwrap();
        message.send(one.as_fd(), None).unwrap();
        let (came, descriptor) = Message::receive(other.as_fd()).unwrap().unwrap();
        assert_eq!(came, message);
        assert!(std::io::read_to_string(std::fs::File::from(descriptor.unwrap())).unwrap().contains("root"));
        let (came, descriptor) = Message::receive(other.as_fd()).unwrap().unwrap();
        assert!(came == message && descriptor.is_none());
        drop(one);
        assert!(Message::receive(other.as_fd()).unwrap().is_none());
    }

    #[test]
    fn data_that_is_not_a_message_is_an_error() {
        let (one, other) = line().unwrap();
        nix::unistd::write(&one, b"short").unwrap();
        assert!(Message::receive(other.as_fd()).is_err());
        let mut bytes = Message::default().encode();
        bytes[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        nix::unistd::write(&one, &bytes).unwrap();
        assert!(Message::receive(other.as_fd()).is_err());
        let long = Message { data: vec![1; BYTES], ..Message::default() };
        assert_eq!(Message::decode(&long.encode()).unwrap().data.len(), MAX_DATA);
    }
}
