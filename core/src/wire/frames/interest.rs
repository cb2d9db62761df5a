//! The entries of an `interest` frame.
//!
//! Decides: their two shapes. Leaves to others: versions, and whether a filter has wildcards. Believes: no clock. Bounded by: the body;
//! entries are read from it one by one.

use sha2::{Digest, Sha256};

use crate::RealmId;
use crate::topic;
use crate::wire::cbor::{Reader, Sink, Value, Writer};

/// One thing a station's clients want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InterestEntry<'a> {
    /// A filter with wildcards.
    Filter {
        /// In which realm.
        realm: RealmId,
        /// The filter.
        filter: &'a str,
    },
    /// An exact topic: the first 16 bytes of SHA-256(realm ‖ topic).
    Topic([u8; 16]),
}

impl InterestEntry<'_> {
    /// The entry of an exact topic.
    pub fn of_topic(realm: RealmId, topic: &str) -> Self {
        let digest: [u8; 32] = Sha256::new_with_prefix(realm.as_bytes())
            .chain_update(topic.as_bytes())
            .finalize()
            .into();
        let mut first = [0; 16];
        first
            .iter_mut()
            .zip(digest)
            .for_each(|(to, from)| *to = from);
        Self::Topic(first)
    }

    pub(super) fn encode<S: Sink + ?Sized>(&self, w: &mut Writer<'_, S>) {
        match self {
            Self::Topic(hash) => w.bytes(hash),
            Self::Filter { realm, filter } => w
                .map(2)
                .text("realm")
                .bytes(realm.as_bytes())
                .text("filter")
                .text(filter),
        };
    }
}

impl<'a> InterestEntry<'a> {
    fn read(value: Value<'a>) -> Option<Self> {
        if let Some(hash) = value.array_of() {
            return Some(Self::Topic(*hash));
        }
        let (mut realm, mut filter) = (None, None);
        let mut entries = value.entries()?;
        while let Some(entry) = entries.next_entry() {
            match entry? {
                (b"realm", value) => realm = Some(RealmId::new(*value.array_of()?)),
                (b"filter", value) => filter = Some(value.text()?),
                _ => return None,
            }
        }
        let (realm, filter) = (realm?, filter?);
        topic::check_filter(filter).ok()?;
        Some(Self::Filter { realm, filter })
    }
}

/// Entries, read one by one from a body, or lent by the writer of a frame.
#[derive(Clone, Copy, Debug)]
pub struct InterestEntries<'a>(Source<'a>);

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Body { reader: Reader<'a>, left: u64 },
    Lent(&'a [InterestEntry<'a>]),
}

impl<'a> InterestEntries<'a> {
    /// Lends entries to a frame that is to be written.
    pub const fn lend(entries: &'a [InterestEntry<'a>]) -> Self {
        Self(Source::Lent(entries))
    }

    /// Every entry is looked at once here, so that iterating cannot fail.
    pub(super) fn read(value: Value<'a>) -> Option<Self> {
        let Value::Array(bytes) = value else {
            return None;
        };
        let mut reader = Reader::new(bytes);
        let left = reader.array()?;
        let whole = Self(Source::Body { reader, left });
        for _ in 0..left {
            InterestEntry::read(reader.value()?)?;
        }
        Some(whole)
    }

    /// How many are left.
    pub fn count_left(&self) -> usize {
        match self.0 {
            Source::Body { left, .. } => usize::try_from(left).unwrap_or(usize::MAX),
            Source::Lent(entries) => entries.len(),
        }
    }
}

impl<'a> Iterator for InterestEntries<'a> {
    type Item = InterestEntry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Body { reader, left } => {
                *left = left.checked_sub(1)?;
                InterestEntry::read(reader.value()?)
            }
            Source::Lent(entries) => {
                let (first, rest) = entries.split_first()?;
                *entries = rest;
                Some(*first)
            }
        }
    }
}
