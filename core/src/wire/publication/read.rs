//! Reading `tbs` in one pass (WIRE.md section 6).
//!
//! Decides: whether bytes are a publication's fields, in order, each in its kind and range and in its one encoding. Leaves to others: all of
//! `alg`. Believes: no clock. Bounded by: the bytes, each looked at once or, in a payload with parts, twice.

use super::{Body, MAX_TTL_MS, NUMBER_LIMIT, Sealed};
use crate::topic::check_topic;
use crate::wire::cbor::{Bounds, MAX_DEPTH, MAX_ITEMS, Simples, Strict};

/// The keys of `tbs`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fields<'a> {
    /// As it stands there.
    pub(super) alg: &'a [u8],
    pub(super) one: bool,
    pub(super) seq: u64,
    pub(super) epoch: Option<u64>,
    pub(super) realm: &'a [u8; 32],
    pub(super) topic: &'a str,
    pub(super) ttl_ms: Option<u32>,
    pub(super) body: Body<'a>,
    pub(super) publisher: &'a [u8; 32],
    pub(super) published_at: u64,
}

impl<'a> Fields<'a> {
    /// `None` for anything that is `malformed`.
    #[inline]
    pub(super) fn read(tbs: &'a [u8]) -> Option<Self> {
        let mut r = Strict::new(tbs);
        // Their order is that of their encodings, so a second one of a kind or one that is none of them is in the way of the next.
        let entries = r.map()?;
        let alg = r.after(b"\x63alg")?.text_bytes()?;
        let one = r.passes(b"\x63one\x01");
        let seq = number(r.after(b"\x63seq")?)?;
        let epoch = match r.passes(b"\x65epoch") {
            true => Some(number(&mut r)?),
            false => None,
        };
        let realm = r.after(b"\x65realm")?.array_of()?;
        let topic = core::str::from_utf8(r.after(b"\x65topic")?.text_bytes()?).ok()?;
        check_topic(topic).ok()?;
        let sealed = match r.passes(b"\x66sealed") {
            true => Some(Body::Sealed(sealed(&mut r)?)),
            false => None,
        };
        let ttl_ms = match r.passes(b"\x66ttl_ms") {
            true => Some(u32::try_from(r.unsigned()?).ok()?),
            false => None,
        };
        if ttl_ms.is_some_and(|ttl| ttl > MAX_TTL_MS) {
            return None;
        }
        let payload = match r.passes(b"\x67payload") {
            true => Some(Body::Payload(payload(&mut r, entries)?)),
            false => None,
        };
        let ((Some(body), None) | (None, Some(body))) = (sealed, payload) else {
            return None;
        };
        let publisher = r.after(b"\x69publisher")?.array_of()?;
        let published_at = r.after(b"\x6cpublished_at")?.unsigned()?;
        let optional = [one, epoch.is_some(), ttl_ms.is_some()];
        let optional = optional.iter().filter(|there| **there).count();
        let whole = entries == 7 + optional as u64 && r.rest().is_empty();
        (whole && published_at < NUMBER_LIMIT).then_some(Self {
            alg,
            one,
            seq,
            epoch,
            realm,
            topic,
            ttl_ms,
            body,
            publisher,
            published_at,
        })
    }
}

/// A number from 1 to 2^53 − 1.
fn number(r: &mut Strict<'_>) -> Option<u64> {
    r.unsigned()
        .filter(|number| (1..NUMBER_LIMIT).contains(number))
}

/// One value, a level below the map that holds it, and counted with what is beside it.
pub(super) fn payload<'a>(r: &mut Strict<'a>, entries: u64) -> Option<&'a [u8]> {
    let beside = u32::try_from(entries).ok()?.checked_mul(2)?;
    let bounds = Bounds {
        depth: MAX_DEPTH - 1,
        items: MAX_ITEMS.checked_sub(beside)?,
    };
    r.value(Simples::Anywhere, bounds)
}

fn sealed<'a>(r: &mut Strict<'a>) -> Option<Sealed<'a>> {
    let ct = r.after(b"\xa4\x62ct")?.bytes()?;
    let nonce = r.after(b"\x65nonce")?.array_of()?;
    let key_id = r.after(b"\x66key_id")?.array_of()?;
    let scheme = r.after(b"\x66scheme")?.unsigned()?;
    (ct.len() >= 16 && matches!(scheme, 1 | 2)).then_some(Sealed {
        ct,
        nonce,
        key_id,
        scheme: scheme as u8,
    })
}
