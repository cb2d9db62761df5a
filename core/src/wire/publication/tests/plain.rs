//! The plain reading of `tbs`: first the rule for all of it, then each key on its own. What the one pass must agree with.

use super::*;
use crate::topic::check_topic;
use crate::wire::cbor::{Bounds, Reader, Simples, Value, walk};

/// The keys of `tbs`, each in its kind and range.
#[derive(Default)]
struct Fields<'a> {
    alg: Option<&'a str>,
    one: bool,
    seq: Option<u64>,
    epoch: Option<u64>,
    realm: Option<&'a [u8; 32]>,
    topic: Option<&'a str>,
    sealed: Option<Sealed<'a>>,
    ttl_ms: Option<u32>,
    payload: Option<&'a [u8]>,
    publisher: Option<&'a [u8; 32]>,
    published_at: Option<u64>,
}

impl<'a> Fields<'a> {
    fn read(tbs: &'a [u8]) -> Option<Self> {
        let mut fields = Self::default();
        let mut reader = Reader::new(tbs);
        for _ in 0..reader.map()? {
            let key = reader.key()?;
            if key == b"payload" {
                fields.payload = Some(reader.skip()?);
                continue;
            }
            let value = reader.value()?;
            match key {
                b"alg" => fields.alg = Some(value.text()?),
                b"one" if value == Value::Unsigned(1) => fields.one = true,
                b"seq" => fields.seq = Some(number(value)?),
                b"epoch" => fields.epoch = Some(number(value)?),
                b"realm" => fields.realm = Some(value.array_of()?),
                b"topic" => {
                    let topic = value.text()?;
                    check_topic(topic).ok()?;
                    fields.topic = Some(topic);
                }
                b"sealed" => fields.sealed = Some(sealed(value)?),
                b"ttl_ms" => {
                    let ttl = u32::try_from(value.unsigned()?).ok()?;
                    fields.ttl_ms = Some(ttl).filter(|ttl| *ttl <= MAX_TTL_MS);
                    fields.ttl_ms?;
                }
                b"publisher" => fields.publisher = Some(value.array_of()?),
                b"published_at" => {
                    let at = value.unsigned()?;
                    fields.published_at = Some(at).filter(|at| *at < NUMBER_LIMIT);
                    fields.published_at?;
                }
                _ => return None,
            }
        }
        Some(fields)
    }

    fn whole(self, object: &Object<'a>) -> Option<(&'a str, Publication<'a>)> {
        let body = match (self.payload, self.sealed) {
            (Some(payload), None) => Body::Payload(payload),
            (None, Some(sealed)) => Body::Sealed(sealed),
            _ => return None,
        };
        let (realm, publisher) = (self.realm?, self.publisher?);
        let publication = Publication {
            bytes: object.bytes,
            key: object.key.try_into().ok()?,
            tbs: object.tbs,
            signature: object.signature.try_into().ok()?,
            realm: RealmId::new(*realm),
            topic: self.topic?,
            publisher: NodeId::new(*publisher),
            epoch: self.epoch,
            seq: self.seq?,
            published_at: WallMs::new(self.published_at?),
            ttl_ms: self.ttl_ms,
            one: self.one,
            body,
            ids: [realm, publisher],
            profile: Profile::ED25519,
        };
        Some((self.alg?, publication))
    }
}

/// An object whose key and signature have the right sizes.
pub(super) fn read<'a>(object: &Object<'a>) -> Result<Publication<'a>, ObjectFault> {
    let (alg, publication) = walk(object.tbs, Simples::InPayload, Bounds::WHOLE)
        .ok()
        .and_then(|()| Fields::read(object.tbs)?.whole(object))
        .ok_or(ObjectFault::Malformed)?;
    match alg == Profile::ED25519.alg() {
        true => Ok(publication),
        false => Err(ObjectFault::AlgMismatch),
    }
}

/// A number from 1 to 2^53 − 1.
fn number(value: Value<'_>) -> Option<u64> {
    value
        .unsigned()
        .filter(|number| (1..NUMBER_LIMIT).contains(number))
}

fn sealed(value: Value<'_>) -> Option<Sealed<'_>> {
    let mut entries = value.entries()?;
    let (mut ct, mut nonce, mut key_id, mut scheme) = (None, None, None, None);
    while let Some(entry) = entries.next_entry() {
        match entry? {
            (b"ct", value) => ct = value.bytes().filter(|ct| ct.len() >= 16),
            (b"nonce", value) => nonce = value.array_of(),
            (b"key_id", value) => key_id = value.array_of(),
            (b"scheme", value) => scheme = value.unsigned().filter(|n| matches!(n, 1 | 2)),
            _ => return None,
        }
    }
    Some(Sealed {
        ct: ct?,
        nonce: nonce?,
        key_id: key_id?,
        scheme: u8::try_from(scheme?).ok()?,
    })
}
