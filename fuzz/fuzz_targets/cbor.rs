//! The CBOR rule against its model: the same verdict with the same reason, and what is accepted is written again as the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::wire::cbor::{Reader, Value, Writer, check};
use tidings_fuzz::cbor::{Tree, parse};

fuzz_target!(|data: &[u8]| {
    let Some((&mode, bytes)) = data.split_first() else {
        return;
    };
    let simples = mode & 1 == 1;
    let model = parse(bytes, simples);
    let verdict = check(bytes, simples);
    assert_eq!(
        verdict.map_err(|fault| fault.text()).err(),
        model.as_ref().err().copied()
    );
    if let Ok(tree) = &model {
        let mut reader = Reader::new(bytes);
        assert_eq!(&read(&mut reader), tree);
        assert!(reader.is_done());
        let mut again = Vec::new();
        write(&mut Writer::new(&mut again), tree);
        assert_eq!(again, bytes, "a value has one encoding");
    }
    // Bytes nobody checked: any answer, but an end.
    let mut reader = Reader::new(bytes);
    let mut left = bytes.len();
    while reader.value().is_some() {
        assert!(reader.rest().len() < left, "every value takes bytes");
        left = reader.rest().len();
    }
});

fn read(reader: &mut Reader<'_>) -> Tree {
    match reader.value().expect("checked bytes hold values") {
        Value::Unsigned(value) => Tree::Integer(value as i64),
        Value::Negative(value) => Tree::Integer(value),
        Value::Bytes(bytes) => Tree::Bytes(bytes.to_vec()),
        Value::Text(text) => Tree::Text(text.to_owned()),
        Value::Float(value) => Tree::Float(value.to_bits()),
        Value::Bool(value) => Tree::Simple(20 + u8::from(value)),
        Value::Null => Tree::Simple(22),
        Value::Array(bytes) => {
            let mut inside = Reader::new(bytes);
            let items = inside.array().expect("an array");
            Tree::Array((0..items).map(|_| read(&mut inside)).collect())
        }
        Value::Map(bytes) => {
            let mut inside = Reader::new(bytes);
            let entries = inside.map().expect("a map");
            Tree::Map(
                (0..entries)
                    .map(|_| (read(&mut inside), read(&mut inside)))
                    .collect(),
            )
        }
        other => panic!("a kind this target does not know: {other:?}"),
    }
}

fn write(writer: &mut Writer<'_, Vec<u8>>, tree: &Tree) {
    match tree {
        Tree::Integer(value) => {
            writer.integer(*value);
        }
        Tree::Bytes(bytes) => {
            writer.bytes(bytes);
        }
        Tree::Text(text) => {
            writer.text(text);
        }
        Tree::Array(items) => {
            writer.array(items.len());
            items.iter().for_each(|item| write(writer, item));
        }
        Tree::Map(entries) => {
            writer.map(entries.len());
            entries.iter().for_each(|(key, value)| {
                write(writer, key);
                write(writer, value);
            });
        }
        Tree::Float(bits) => {
            writer.float(f64::from_bits(*bits));
        }
        Tree::Simple(22) => {
            writer.null();
        }
        Tree::Simple(info) => {
            writer.bool(*info == 21);
        }
    }
}
