//! The CBOR rule: every entry's verdict, its items, depth and tokens, and the writer's way back.

use serde_json::{Value as Json, json};
use tidings::wire::cbor::{Reader, Value, Writer, check};

use crate::{Verdict, bytes_of, hex, refuse, run, text, to_hex};

fn input(entry: &Json) -> Vec<u8> {
    match entry["parts"].as_array() {
        None => bytes_of(entry, "hex"),
        Some(parts) => parts
            .iter()
            .flat_map(|part| {
                hex(text(part, "hex")).repeat(part["times"].as_u64().unwrap() as usize)
            })
            .collect(),
    }
}

fn judge(entry: &Json) -> Verdict {
    let bytes = input(entry);
    if let Err(fault) = check(&bytes, entry["payload"].as_bool().unwrap()) {
        return refuse(fault.text());
    }
    let mut walk = Walk::default();
    let mut reader = Reader::new(&bytes);
    walk.item(&mut reader, 0);
    assert!(reader.is_done());
    assert_eq!(
        walk.written, bytes,
        "the writer writes what the reader read"
    );
    let mut expect = json!({ "items": walk.items, "depth": walk.depth });
    if entry.get("hex").is_some() {
        expect["tokens"] = Json::Array(walk.tokens);
    }
    Ok(expect)
}

#[derive(Default)]
struct Walk {
    items: u64,
    depth: u64,
    tokens: Vec<Json>,
    written: Vec<u8>,
}

impl Walk {
    fn item(&mut self, reader: &mut Reader<'_>, outside: u64) {
        self.items += 1;
        let map = reader.map();
        if let Some(count) = map.or_else(|| reader.array()) {
            self.depth = self.depth.max(outside + 1);
            let mut w = Writer::new(&mut self.written);
            let (name, items) = if map.is_some() {
                w.map(count as usize);
                ("map", count * 2)
            } else {
                w.array(count as usize);
                ("array", count)
            };
            self.tokens.push(json!([name, count]));
            (0..items).for_each(|_| self.item(reader, outside + 1));
            return;
        }
        let mut w = Writer::new(&mut self.written);
        self.tokens.push(match reader.value().expect("an item") {
            Value::Unsigned(value) => {
                w.unsigned(value);
                json!(["int", value.to_string()])
            }
            Value::Negative(value) => {
                w.integer(value);
                json!(["int", value.to_string()])
            }
            Value::Bytes(value) => {
                w.bytes(value);
                json!(["bytes", to_hex(value)])
            }
            Value::Text(value) => {
                w.text(value);
                json!(["text", value])
            }
            Value::Float(value) => {
                w.float(value);
                json!(["float", format!("{:016x}", value.to_bits())])
            }
            Value::Bool(value) => {
                w.bool(value);
                json!([value.to_string()])
            }
            Value::Null => {
                w.null();
                json!(["null"])
            }
            other => panic!("{other:?}"),
        });
    }
}

#[test]
fn cbor() {
    run("cbor", judge);
}

#[test]
fn rfc8949() {
    run("rfc/rfc8949", judge);
}
