//! Questions about keys and their answers, as they travel sealed (WIRE.md section 6.2).
//!
//! Decides: their one encoding, and whether bytes are such an answer. Leaves to others: what an answer must hold (`answer`), sealing and
//! carrying them. Believes: no clock. Bounded by: the bytes handed in; three periods are looked at, as two are the most that may stand there.

use super::{KeyPeriod, KeysFault, MOST_PERIODS, Which};
use crate::code::SealPolicy;
use crate::time::WallMs;
use crate::wire::NUMBER_LIMIT;
use crate::wire::cbor::{self, Reader, Sink, Value, Writer};

/// Appends the question for the keys of a group with this prefix.
pub fn write_question<S: Sink + ?Sized>(which: Which, prefix: &str, out: &mut S) {
    let w = &mut Writer::new(out);
    w.map(2).text("epoch");
    match which {
        Which::Current => w.text("current"),
        Which::One(id) => w.bytes(&id),
    };
    w.text("prefix").text(prefix);
}

/// Reads such a question: which key period of which prefix.
///
/// # Errors
/// [`KeysFault::Malformed`].
pub fn read_question(bytes: &[u8]) -> Result<(Which, &str), KeysFault> {
    let question = || {
        cbor::check(bytes, false).ok()?;
        let mut entries = Reader::new(bytes).entries()?;
        let (mut which, mut prefix) = (None, None);
        while let Some(entry) = entries.next_entry() {
            match entry? {
                (b"epoch", Value::Text("current")) => which = Some(Which::Current),
                (b"epoch", value) => which = Some(Which::One(*value.array_of()?)),
                (b"prefix", value) => prefix = Some(value.text()?),
                _ => return None,
            }
        }
        Some((which?, prefix?))
    };
    question().ok_or(KeysFault::Malformed)
}

/// Appends an answer. What it holds is secret: it travels sealed, and `out` is wiped by whoever has it.
pub fn write_answer<S: Sink + ?Sized>(
    policy: SealPolicy,
    prefix: &str,
    periods: &[KeyPeriod],
    out: &mut S,
) {
    let w = &mut Writer::new(out);
    w.map(3).text("epochs").array(periods.len());
    for period in periods {
        w.map(5).text("id").bytes(period.key.id());
        w.text("key").bytes(period.key.secret());
        w.text("issued_at").unsigned(period.issued_at.as_millis());
        let accept_until = period.accept_until.as_millis();
        w.text("accept_until").unsigned(accept_until);
        let publish_until = period.publish_until.as_millis();
        w.text("publish_until").unsigned(publish_until);
    }
    w.text("policy").text(policy.text());
    w.text("prefix").text(prefix);
}

/// An answer that is well formed: its policy, and its periods one by one. Keys beside those of the table are read past.
#[derive(Clone, Copy, Debug)]
pub struct AnswerReader<'a> {
    policy: SealPolicy,
    periods: Reader<'a>,
    left: u64,
}

impl<'a> AnswerReader<'a> {
    /// Over the answer about a group with this prefix.
    ///
    /// # Errors
    /// [`KeysFault::Malformed`]; [`KeysFault::Count`] with more than two periods.
    pub fn new(bytes: &'a [u8], prefix: &str) -> Result<Self, KeysFault> {
        let answer = || {
            cbor::check(bytes, true).ok()?;
            let mut entries = Reader::new(bytes).entries()?;
            let (mut policy, mut periods, mut told) = (None, None, None);
            while let Some(entry) = entries.next_entry() {
                match entry? {
                    (b"epochs", Value::Array(list)) => periods = Some(list),
                    (b"policy", value) => policy = SealPolicy::from_text(value.text()?),
                    (b"prefix", value) => told = value.text(),
                    (b"epochs", _) => return None,
                    _ => (),
                }
            }
            let mut periods = Reader::new(periods?);
            let left = periods.array()?;
            (told? == prefix).then_some(Self {
                policy: policy?,
                periods,
                left,
            })
        };
        let answer: Self = answer().ok_or(KeysFault::Malformed)?;
        // All of it is looked at before any of it is used.
        let mut all = answer;
        while let Some(period) = all.next_period() {
            period?;
        }
        match answer.left {
            0 => Err(KeysFault::Count),
            left if left > MOST_PERIODS as u64 => Err(KeysFault::Count),
            _ => Ok(answer),
        }
    }

    /// What is asked of facts under the prefix.
    pub fn policy(&self) -> SealPolicy {
        self.policy
    }

    /// The next period.
    pub fn next_period(&mut self) -> Option<Result<KeyPeriod, KeysFault>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.period().ok_or(KeysFault::Malformed))
    }

    fn period(&mut self) -> Option<KeyPeriod> {
        let mut entries = self.periods.value()?.entries()?;
        let (mut id, mut key, mut times) = (None, None, [None; 3]);
        while let Some(entry) = entries.next_entry() {
            let (name, value) = entry?;
            let time = |value: Value<'_>| {
                let number = value.unsigned().filter(|number| *number < NUMBER_LIMIT);
                number.map(WallMs::new)
            };
            match name {
                b"id" => id = Some(*value.array_of()?),
                b"key" => key = Some(value.array_of()?),
                b"issued_at" => times[0] = Some(time(value)?),
                b"publish_until" => times[1] = Some(time(value)?),
                b"accept_until" => times[2] = Some(time(value)?),
                _ => (),
            }
        }
        let [Some(issued_at), Some(publish_until), Some(accept_until)] = times else {
            return None;
        };
        Some(KeyPeriod {
            accept_until,
            ..KeyPeriod::new(id?, *key?, issued_at, publish_until)
        })
    }
}
