//! The CBOR rule: accepted bytes with their walk, refused bytes with the first reason met.
//!
//! Decides: nothing. Leaves to others: the rule; the walk shown is the core's reader's. Believes: no clock. Bounded by: the entry.

use serde_json::{Value, json};
use tidings::wire::cbor::{self, Reader};

use super::{Broken, Judged, hex, refuse, text, unhex};

pub(super) fn judge(entry: &Value) -> Result<Judged, Broken> {
    let payload = entry["payload"].as_bool().ok_or("has no payload")?;
    let bytes = input(entry)?;
    if let Err(fault) = cbor::check(&bytes, payload) {
        return Ok(Err(refuse(fault.text())));
    }
    let mut walk = Walk::default();
    walk.item(&mut Reader::new(&bytes), 0)
        .ok_or("passes the check and cannot be read")?;
    let mut out = json!({ "items": walk.items, "depth": walk.deepest });
    if entry.get("hex").is_some() {
        out["tokens"] = Value::Array(walk.tokens);
    }
    Ok(Ok(out))
}

/// `hex`, or `parts` repeated and joined.
fn input(entry: &Value) -> Result<Vec<u8>, Broken> {
    if entry.get("hex").is_some() {
        return unhex(text(entry, "hex")?);
    }
    let mut bytes = Vec::new();
    for part in entry["parts"]
        .as_array()
        .ok_or("has neither hex nor parts")?
    {
        let times = part["times"]
            .as_u64()
            .and_then(|times| usize::try_from(times).ok());
        bytes.extend(unhex(text(part, "hex")?)?.repeat(times.ok_or("has a part without times")?));
    }
    Ok(bytes)
}

#[derive(Default)]
struct Walk {
    items: u64,
    deepest: u64,
    tokens: Vec<Value>,
}

impl Walk {
    /// One item inside `outside` containers. Recursion is bounded: 64 levels passed the check.
    fn item(&mut self, reader: &mut Reader<'_>, outside: u64) -> Option<()> {
        self.items += 1;
        if let Some(entries) = reader.map() {
            self.container("map", entries, outside);
            return (0..entries.checked_mul(2)?).try_for_each(|_| self.item(reader, outside + 1));
        }
        if let Some(items) = reader.array() {
            self.container("array", items, outside);
            return (0..items).try_for_each(|_| self.item(reader, outside + 1));
        }
        self.tokens.push(match reader.value()? {
            cbor::Value::Unsigned(value) => json!(["int", value.to_string()]),
            cbor::Value::Negative(value) => json!(["int", value.to_string()]),
            cbor::Value::Bytes(bytes) => json!(["bytes", hex(bytes)]),
            cbor::Value::Text(text) => json!(["text", text]),
            cbor::Value::Float(value) => json!(["float", hex(&value.to_bits().to_be_bytes())]),
            cbor::Value::Bool(value) => json!([if value { "true" } else { "false" }]),
            cbor::Value::Null => json!(["null"]),
            _ => return None,
        });
        Some(())
    }

    fn container(&mut self, name: &str, count: u64, outside: u64) {
        self.deepest = self.deepest.max(outside + 1);
        self.tokens.push(json!([name, count]));
    }
}
