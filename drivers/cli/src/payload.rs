//! Payloads as people and pipes see them.
//!
//! Decides: how lines become CBOR and CBOR becomes text. Leaves to others: the CBOR rule; the core checks it both ways. Believes: no
//! clock. Bounded by: 64 levels, which the core checked before a payload is seen here.
//!
//! As JSON: a byte string is `{"bytes": "<hex>"}`, an integer key is its decimal text, all else is itself.

use minicbor::Decoder;
use minicbor::data::Type;
use serde_json::Value;

/// A text as CBOR.
pub(crate) fn text(text: &str) -> Vec<u8> {
    let mut cbor = Vec::with_capacity(text.len() + 9);
    // Writing into memory cannot fail.
    minicbor::Encoder::new(&mut cbor)
        .str(text)
        .map(|_| ())
        .unwrap_or_default();
    cbor
}

/// A byte string as CBOR.
pub(crate) fn bytes(bytes: &[u8]) -> Vec<u8> {
    let mut cbor = Vec::with_capacity(bytes.len() + 9);
    minicbor::Encoder::new(&mut cbor)
        .bytes(bytes)
        .map(|_| ())
        .unwrap_or_default();
    cbor
}

/// A JSON value of one line.
///
/// # Errors
/// Why the line cannot be published.
pub(crate) fn from_json(line: &str) -> Result<Value, String> {
    if let Some(digits) = too_large_integer(line) {
        let shown: String = digits.chars().take(24).collect();
        return Err(format!(
            "the integer {shown} does not fit in 64 bits with a sign; write it as a string"
        ));
    }
    crate::json::read(line).map_err(|error| format!("it is not JSON ({error})"))
}

/// The first integer that JSON can write and the wire cannot carry. JSON readers round such numbers in silence.
fn too_large_integer(line: &str) -> Option<&str> {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let start = at;
                at += 1;
                while at < bytes.len()
                    && matches!(bytes[at], b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')
                {
                    at += 1;
                }
                let number = &line[start..at];
                let whole = !number.contains(['.', 'e', 'E']);
                if whole && number.len() > 18 && number.parse::<i64>().is_err() {
                    return Some(number);
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// Appends the payload as JSON on one line.
pub(crate) fn write_json(out: &mut Vec<u8>, payload: &[u8]) {
    write_value(out, &mut Decoder::new(payload)).unwrap_or_default();
}

/// Appends the payload for a reader of lines: a text as it is, anything else as JSON.
pub(crate) fn write_line(out: &mut Vec<u8>, payload: &[u8], for_terminal: bool) {
    let mut decoder = Decoder::new(payload);
    match decoder.str() {
        Ok(text) if for_terminal => out.extend_from_slice(crate::human::printable(text).as_bytes()),
        Ok(text) => out.extend_from_slice(text.as_bytes()),
        Err(_) => write_json(out, payload),
    }
    out.push(b'\n');
}

/// Appends the contents of a text or byte string exactly; anything else as a line of JSON.
pub(crate) fn write_raw(out: &mut Vec<u8>, payload: &[u8]) {
    let mut decoder = Decoder::new(payload);
    match decoder.datatype() {
        Ok(Type::String) => out.extend_from_slice(decoder.str().unwrap_or_default().as_bytes()),
        Ok(Type::Bytes) => out.extend_from_slice(decoder.bytes().unwrap_or_default()),
        _ => {
            write_json(out, payload);
            out.push(b'\n');
        }
    }
}

/// Appends a JSON string.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing text into memory cannot fail.
    serde_json::to_writer(out, text).unwrap_or_default();
}

fn write_value(
    out: &mut Vec<u8>,
    decoder: &mut Decoder<'_>,
) -> Result<(), minicbor::decode::Error> {
    match decoder.datatype()? {
        Type::Bool => out.extend_from_slice(if decoder.bool()? { b"true" } else { b"false" }),
        Type::Null => {
            decoder.null()?;
            out.extend_from_slice(b"null");
        }
        Type::String => write_text(out, decoder.str()?),
        Type::Bytes => {
            out.extend_from_slice(b"{\"bytes\":\"");
            for byte in decoder.bytes()? {
                out.extend_from_slice(format!("{byte:02x}").as_bytes());
            }
            out.extend_from_slice(b"\"}");
        }
        Type::F64 => serde_json::to_writer(&mut *out, &decoder.f64()?).unwrap_or_default(),
        Type::Array => {
            out.push(b'[');
            for n in 0..decoder.array()?.unwrap_or_default() {
                if n > 0 {
                    out.push(b',');
                }
                write_value(out, decoder)?;
            }
            out.push(b']');
        }
        Type::Map => {
            out.push(b'{');
            for n in 0..decoder.map()?.unwrap_or_default() {
                if n > 0 {
                    out.push(b',');
                }
                match decoder.datatype()? {
                    Type::String => write_text(out, decoder.str()?),
                    _ => write_text(out, &decoder.i64()?.to_string()),
                }
                out.push(b':');
                write_value(out, decoder)?;
            }
            out.push(b'}');
        }
        _ => out.extend_from_slice(decoder.i64()?.to_string().as_bytes()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(cbor: &[u8]) -> String {
        let mut out = Vec::new();
        write_json(&mut out, cbor);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_beyond_64_bits_with_a_sign_are_refused() {
        for line in [
            "9223372036854775808",
            "[1, -9223372036854775809]",
            "{\"a\": 123456789012345678901234567890}",
        ] {
            assert!(
                from_json(line).unwrap_err().starts_with("the integer"),
                "{line}"
            );
        }
        for line in [
            "9223372036854775807",
            "-9223372036854775808",
            "\"9223372036854775808\"",
            "9223372036854775808.0",
            "\"\\\"9223372036854775808\"",
        ] {
            assert!(from_json(line).is_ok(), "{line}");
        }
        assert!(from_json("{").unwrap_err().starts_with("it is not JSON"));
    }

    #[test]
    fn cbor_becomes_json() {
        assert_eq!(
            json(&[0xa2, 0x01, 0xf6, 0x61, b'a', 0x82, 0x20, 0xf5]),
            "{\"1\":null,\"a\":[-1,true]}"
        );
        assert_eq!(json(&[0x42, 0x00, 0xff]), "{\"bytes\":\"00ff\"}");
        assert_eq!(json(&[0xfb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]), "1.5");
        assert_eq!(json(&[0x63, b'a', b'"', b'\n']), "\"a\\\"\\n\"");
    }

    #[test]
    fn raw_is_what_was_published() {
        let mut out = Vec::new();
        write_raw(&mut out, &[0x42, 0x00, 0xff]);
        write_raw(&mut out, &[0x61, b'x']);
        write_raw(&mut out, &[0x05]);
        assert_eq!(out, b"\x00\xffx5\n");
    }
}
