use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::check::{Bounds, Simples, walk};
use super::*;

/// The rule as one recursive walk, written without regard for speed.
struct Naive<'a> {
    bytes: &'a [u8],
    at: usize,
    items: u32,
    simples: Simples,
}

impl<'a> Naive<'a> {
    fn check(bytes: &'a [u8], simples: Simples) -> Result<(), CborFault> {
        let mut naive = Self {
            bytes,
            at: 0,
            items: 0,
            simples,
        };
        naive.item(0, simples == Simples::Anywhere, false)?;
        if naive.at < bytes.len() {
            return Err(CborFault::Trailing);
        }
        Ok(())
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], CborFault> {
        if len > (self.bytes.len() - self.at) as u64 {
            return Err(CborFault::Truncated);
        }
        self.at += len as usize;
        Ok(&self.bytes[self.at - len as usize..self.at])
    }

    fn head(&mut self, allowed: bool) -> Result<(u8, u64), CborFault> {
        let first = self.take(1)?[0];
        let (kind, info) = (first >> 5, first & 31);
        let width = match info {
            24..=27 => 1 << (info - 24),
            _ => 0,
        };
        let argument = self
            .take(width)?
            .iter()
            .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let argument = if width == 0 { info.into() } else { argument };
        let least = [24, 1 << 8, 1 << 16, 1 << 32];
        if (28..31).contains(&info) {
            return Err(CborFault::ReservedHead);
        } else if info == 31 {
            return Err(CborFault::Indefinite);
        } else if kind != 7 && width > 0 && argument < least[usize::from(info) - 24] {
            return Err(CborFault::LongHead);
        } else if kind == 6 {
            return Err(CborFault::Tag);
        } else if kind == 7 && info < 25 && !(allowed && (20..23).contains(&info)) {
            return Err(CborFault::Simple);
        } else if kind == 7 && info >= 25 && (info < 27 || !f64::from_bits(argument).is_finite()) {
            return Err(CborFault::Float);
        } else if kind < 2 && argument >= 1 << 63 {
            return Err(CborFault::IntegerRange);
        }
        Ok((kind, argument))
    }

    fn item(&mut self, outside: usize, allowed: bool, key: bool) -> Result<(), CborFault> {
        let (kind, argument) = self.head(allowed)?;
        if key && !matches!(kind, 0 | 1 | 3) {
            return Err(CborFault::BadKey);
        }
        self.items += 1;
        if self.items > MAX_ITEMS {
            return Err(CborFault::TooManyItems);
        }
        if matches!(kind, 4 | 5) && outside >= MAX_DEPTH {
            return Err(CborFault::TooDeep);
        }
        match kind {
            2 => drop(self.take(argument)?),
            3 => drop(core::str::from_utf8(self.take(argument)?).map_err(|_| CborFault::BadText)?),
            4 => (0..argument).try_for_each(|_| self.item(outside + 1, allowed, false))?,
            5 => {
                let mut before: Option<&[u8]> = None;
                for _ in 0..argument {
                    let start = self.at;
                    self.item(outside + 1, allowed, true)?;
                    let name = &self.bytes[start..self.at];
                    match before.map(|before| before.cmp(name)) {
                        Some(core::cmp::Ordering::Equal) => return Err(CborFault::DuplicateKey),
                        Some(core::cmp::Ordering::Greater) => return Err(CborFault::KeyOrder),
                        _ => before = Some(name),
                    }
                    let inside = self.simples == Simples::InPayload && outside == 0;
                    self.item(
                        outside + 1,
                        allowed || inside && name == b"\x67payload",
                        false,
                    )?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Well-formed values and near misses: heads of every kind over small arguments, nested.
fn near_misses() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        4 => any::<u8>().prop_map(|byte| vec![byte]),
        3 => (0u8..24).prop_map(|n| vec![n]),
        2 => "[a-c]{0,3}".prop_map(|text| {
            let mut out = Vec::new();
            Writer::new(&mut out).text(&text);
            out
        }),
        1 => any::<i64>().prop_map(|n| {
            let mut out = Vec::new();
            Writer::new(&mut out).integer(n);
            out
        }),
        1 => any::<f64>().prop_map(|n| {
            let mut out = Vec::new();
            Writer::new(&mut out).float(n);
            out
        }),
        1 => Just(b"\x67payload".to_vec()),
        1 => prop::sample::select(vec![0xf4u8, 0xf5, 0xf6, 0xf7, 0xff, 0xc0]).prop_map(|b| vec![b]),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        (
            prop::collection::vec(inner, 0..6),
            any::<bool>(),
            any::<bool>(),
        )
            .prop_map(|(mut items, map, sort)| {
                let mut out = Vec::new();
                let mut w = Writer::new(&mut out);
                if map {
                    let mut pairs: Vec<_> = items.chunks_exact(2).map(<[_]>::concat).collect();
                    if sort {
                        pairs.sort();
                    }
                    w.map(pairs.len());
                    items = pairs;
                } else {
                    w.array(items.len());
                }
                out.extend(items.concat());
                out
            })
    })
}

fn agrees(bytes: &[u8]) -> Result<(), TestCaseError> {
    for simples in [Simples::Nowhere, Simples::Anywhere, Simples::InPayload] {
        let ours = walk(bytes, simples, Bounds::WHOLE);
        prop_assert_eq!(ours, Naive::check(bytes, simples), "{:02x?}", bytes);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_walk_agrees_with_the_naive_one_on_near_misses(bytes in near_misses(), cut in 0usize..9) {
        agrees(&bytes)?;
        agrees(&bytes[..bytes.len().saturating_sub(cut)])?;
    }

    #[test]
    fn the_walk_agrees_with_the_naive_one_on_any_bytes(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        agrees(&bytes)?;
    }

    #[test]
    fn the_reader_never_panics_on_bytes_nobody_checked(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut reader = Reader::new(&bytes);
        let mut left = bytes.len();
        while reader.value().is_some() {
            prop_assert!(reader.rest().len() < left);
            left = reader.rest().len();
        }
        if let Some(mut entries) = Reader::new(&bytes).entries() {
            for _ in 0..100 {
                if entries.next_entry().flatten().is_none() {
                    break;
                }
            }
        }
        prop_assert!(Reader::new(&bytes).skip().is_none_or(|item| bytes.starts_with(item)));
    }

    #[test]
    fn an_independent_reader_reads_what_the_writer_writes(
        number in any::<u64>(), signed in any::<i64>(), text in ".{0,40}",
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out);
        w.array(4).unsigned(number).integer(signed).text(&text).bytes(&bytes);
        let mut theirs = minicbor::Decoder::new(&out);
        prop_assert_eq!(theirs.array().unwrap(), Some(4));
        prop_assert_eq!(theirs.u64().unwrap(), number);
        prop_assert_eq!(theirs.i64().unwrap(), signed);
        prop_assert_eq!(theirs.str().unwrap(), text.as_str());
        prop_assert_eq!(theirs.bytes().unwrap(), bytes.as_slice());
        if number < 1 << 63 {
            prop_assert_eq!(check(&out, false), Ok(()));
        }
    }
}

#[test]
fn sixty_four_levels_are_read_and_sixty_five_refused() {
    for (kind, fill) in [(0x81u8, None), (0xa1, Some(0x00))] {
        let nest = |levels: usize| {
            let mut bytes = Vec::new();
            for _ in 0..levels {
                bytes.push(kind);
                bytes.extend(fill);
            }
            bytes.push(0);
            bytes
        };
        for levels in [7, 8, 9, 10, 63, 64] {
            assert_eq!(check(&nest(levels), false), Ok(()), "{levels}");
        }
        for levels in [65, 66, 1000] {
            assert_eq!(
                check(&nest(levels), false),
                Err(CborFault::TooDeep),
                "{levels}"
            );
        }
    }
}

#[test]
fn the_item_after_the_last_allowed_one_is_refused() {
    let array = |items: u32| {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).array(items as usize);
        bytes.resize(bytes.len() + items as usize, 0);
        bytes
    };
    assert_eq!(check(&array(MAX_ITEMS - 1), false), Ok(()));
    assert_eq!(
        check(&array(MAX_ITEMS), false),
        Err(CborFault::TooManyItems)
    );
    // A count is never believed: three bytes declare four billion items.
    assert_eq!(
        check(b"\x9a\xff\xff\xff\xff", false),
        Err(CborFault::Truncated)
    );
    assert_eq!(
        check(b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff", false),
        Err(CborFault::Truncated)
    );
}

#[test]
fn a_slice_too_short_says_how_much_is_needed() {
    for room in 0..12 {
        let mut slice = [0; 12];
        let mut sink = SliceSink::new(&mut slice[..room]);
        Writer::new(&mut sink).array(2).text("topic").unsigned(1000);
        let needed = 1 + 6 + 3;
        let want = if room < needed {
            Err(TooSmall { needed })
        } else {
            Ok(needed)
        };
        assert_eq!(sink.finish(), want);
    }
}
