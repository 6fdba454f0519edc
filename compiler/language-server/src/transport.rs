// SPDX-License-Identifier: GPL-2.0-or-later

//! Messages from a stream and to one: a header with `Content-Length`, an empty line, JSON.
//!
//! Text that is not JSON or not a message is reported, and the next message is read. A header without a length ends the
//! stream, because the beginning of the next message is not known.

use std::io::{self, BufRead, Read, Write};

use lsp_server::{Message, RequestId};
use serde_json::Value;

/// Maximum size of a message: a document has at most 64 MiB, and its text may be twice as long in JSON.
pub const MAX_MESSAGE: u64 = 192 << 20;
/// Maximum number of values in a message: each takes 32 bytes, though it may have two in JSON.
const MAX_VALUES: usize = 4 << 20;
/// Longest header line.
const MAX_HEADER: u64 = 4096;
/// Maximum number of header lines.
const MAX_HEADERS: usize = 32;

/// A message from the client.
#[derive(Debug)]
pub enum Incoming {
    /// A message.
    Message(Message),
    /// Text that is not a message; with its id, if it has one.
    Broken {
        /// The id for the answer.
        id: Option<RequestId>,
        /// The protocol's code of the error.
        code: lsp_server::ErrorCode,
        /// What is wrong.
        message: String,
    },
}

/// Reads the next message, and gives its bytes; None: the stream has ended between two messages.
pub fn read(input: &mut impl BufRead) -> io::Result<Option<(Incoming, u64)>> {
    let Some(length) = read_header(input)? else { return Ok(None) };
    Ok(Some((read_body(input, length)?, length)))
}

fn read_body(input: &mut impl BufRead, length: u64) -> io::Result<Incoming> {
    let invalid =
        |id, message: String| Ok(Incoming::Broken { id, code: lsp_server::ErrorCode::InvalidRequest, message });
    if length > MAX_MESSAGE {
        let skipped = io::copy(&mut input.take(length), &mut io::sink())?;
        if skipped < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        return invalid(None, format!("a message of {length} bytes; {MAX_MESSAGE} are taken"));
    }
    let mut body = Vec::new();
    if input.take(length).read_to_end(&mut body)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if values(&body) > MAX_VALUES {
        return invalid(None, format!("a message of more than {MAX_VALUES} values"));
    }
    let value: Value = match serde_json::from_slice(&body) {
        Ok(value) => value,
        Err(error) => {
            let code = lsp_server::ErrorCode::ParseError;
            return Ok(Incoming::Broken { id: None, code, message: format!("this is not JSON: {error}") });
        }
    };
    // Of a text of many megabytes.
    drop(body);
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    // A list would be taken for the fields of a message in their order, and an object with only an id for a response.
    let is_message = ["method", "result", "error"].iter().any(|name| value.get(name).is_some());
    let message = if is_message { serde_json::from_value(value).ok() } else { None };
    match message {
        Some(message) => Ok(Incoming::Message(message)),
        None => invalid(id, "this is neither a request, a response nor a notification".into()),
    }
}

/// The values in a text of JSON, as far as there are separators before them.
fn values(body: &[u8]) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

/// The length that a header gives.
fn read_header(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut length = None;
    for count in 0..MAX_HEADERS {
        let mut line = Vec::new();
        let read = input.take(MAX_HEADER).read_until(b'\n', &mut line)?;
        if read == 0 && count == 0 {
            return Ok(None);
        }
        if line.pop() != Some(b'\n') {
            return Err(io::Error::other("the header of a message is cut off, or too long"));
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            return length.map(Some).ok_or_else(|| io::Error::other("the header of a message gives no Content-Length"));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<u64>().ok();
        }
    }
    Err(io::Error::other("the header of a message does not end"))
}

/// Writes a message.
pub fn write(output: &mut impl Write, message: &Message) -> io::Result<()> {
    let mut value = serde_json::to_value(message)?;
    if let Some(object) = value.as_object_mut() {
        object.insert("jsonrpc".into(), "2.0".into());
        // A response has either a result or an error.
        if matches!(message, Message::Response(response) if response.error.is_none() && response.result.is_none()) {
            object.insert("result".into(), Value::Null);
        }
    }
    let body = value.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

/// The response to a message that was not a request: its id is null (JSON-RPC 2.0, 5).
pub fn write_error(output: &mut impl Write, code: lsp_server::ErrorCode, message: &str) -> io::Result<()> {
    let body = serde_json::json!({
        "jsonrpc": "2.0", "id": null, "error": { "code": code as i32, "message": message }
    })
    .to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> (Vec<String>, bool) {
        let mut input = text.as_bytes();
        let mut seen = Vec::new();
        loop {
            match read(&mut input) {
                Ok(Some((Incoming::Message(message), _))) => seen.push(serde_json::to_string(&message).unwrap()),
                Ok(Some((Incoming::Broken { id, code, .. }, _))) => seen.push(format!("{} {id:?}", code as i32)),
                Ok(None) => return (seen, true),
                Err(_) => return (seen, false),
            }
        }
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn invalid_messages_are_reported() {
        let good = r#"{"method":"a"}"#;
        let text = [framed("{"), framed(r#"{"id":7}"#), framed("[1]"), framed("\u{fffd}"), framed(good)].concat();
        let (seen, ended) = all(&text);
        assert!(ended);
        assert_eq!(seen.len(), 5);
        assert_eq!(seen[0], "-32700 None");
        assert_eq!(seen[1], format!("-32600 {:?}", Some(RequestId::from(7))));
        assert_eq!((seen[2].as_str(), seen[4].as_str()), ("-32600 None", good));
    }

    #[test]
    fn a_message_of_many_values_is_refused() {
        let most = MAX_VALUES - 3;
        let text = |count: usize| format!(r#"{{"method":"a,[{{\"","params":[0{}]}}"#, ",0".repeat(count));
        assert_eq!(values(text(0).as_bytes()), 3);
        let (seen, _) = all(&[framed(&text(most)), framed(&text(most + 1))].concat());
        assert!(seen[0].starts_with(r#"{"method":"a,[{"#) && seen[1] == "-32600 None", "{}", seen[1]);
    }

    #[test]
    fn a_header_without_a_length_ends_the_stream() {
        assert_eq!(all("X: y\r\n\r\n{}"), (vec![], false));
        assert_eq!(all("Content-Length: 99\r\n\r\n{}"), (vec![], false));
        assert_eq!(all("Content-Length: 99999999999999999\r\n\r\n{}"), (vec![], false));
        assert_eq!(all("no end"), (vec![], false));
        assert_eq!(all(""), (vec![], true));
        let lower = "content-length: 14\ncontent-type: x\n\n{\"method\":\"a\"}";
        assert_eq!(all(lower).0.len(), 1);
    }

    #[test]
    fn written_messages_can_be_read() {
        let mut bytes = Vec::new();
        let response = lsp_server::Response { id: 1.into(), result: None, error: None };
        write(&mut bytes, &response.into()).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.contains("\"result\":null") && text.contains("\"jsonrpc\":\"2.0\""), "{text}");
        assert!(matches!(read(&mut bytes.as_slice()), Ok(Some((Incoming::Message(Message::Response(_)), _)))));
    }
}
