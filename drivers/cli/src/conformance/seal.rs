//! The event seal: payloads sealed and opened, sealed publications.
//!
//! Decides: nothing. Leaves to others: the cipher, the core's. Believes: no clock. Bounded by: the entry.

use serde_json::{Value, json};
use tidings::crypto::{PeriodKey, Place, Profile, Seal, SecretKey, Signer, Subkey};
use tidings::wire::{Body, Draft, Publication};
use tidings::{NodeId, RealmId, WallMs};

use super::{Broken, Judged, array_of, bytes_of, hex, refuse, text};

/// The signers of the vectors: seeds of one byte over and over.
const SIGNERS: std::ops::RangeInclusive<u8> = 1..=4;

pub(super) fn judge(entry: &Value) -> Result<Judged, Broken> {
    match text(entry, "kind")? {
        "seal" => seal(entry),
        "open" => open(entry),
        "event" => event(entry),
        other => Err(format!("has the unknown kind {other}")),
    }
}

fn number(entry: &Value, key: &str) -> Result<u64, Broken> {
    entry[key].as_u64().ok_or_else(|| format!("has no {key}"))
}

fn place(entry: &Value) -> Result<Place<'_>, Broken> {
    Ok(Place {
        realm: RealmId::new(array_of(entry, "realm")?),
        topic: text(entry, "topic")?,
        publisher: NodeId::new(array_of(entry, "publisher")?),
        epoch: match entry.get("epoch") {
            Some(_) => Some(number(entry, "epoch")?),
            None => None,
        },
        seq: number(entry, "seq")?,
        published_at: WallMs::new(number(entry, "published_at")?),
        key_id: array_of(entry, "key_id")?,
    })
}

fn subkey(entry: &Value, key_id: [u8; 8], publisher: &NodeId) -> Result<Subkey, Broken> {
    let period = PeriodKey::new(key_id, array_of(entry, "period_key")?);
    Ok(Subkey::derive(&period, publisher))
}

fn seal(entry: &Value) -> Result<Judged, Broken> {
    let place = place(entry)?;
    let mut aad = Vec::new();
    place.encode_aad(&mut aad);
    let mut ct = bytes_of(entry, "plain")?;
    let (nonce, tag) = subkey(entry, place.key_id, &place.publisher)?
        .seal(&place, &array_of(entry, "entropy")?, &mut ct)
        .map_err(|error| error.to_string())?;
    ct.extend(tag);
    Ok(Ok(
        json!({ "aad": hex(&aad), "nonce": hex(&nonce), "ct": hex(&ct) }),
    ))
}

fn open(entry: &Value) -> Result<Judged, Broken> {
    let mut opened = open_as_given(entry)?;
    if let Some(name) = entry.get("flip").and_then(Value::as_str) {
        if opened.is_none() {
            return Err("does not open before a bit is changed".to_owned());
        }
        opened = None;
        for changed in flips(entry, name)? {
            opened = opened.or(open_as_given(&changed)?);
        }
    }
    Ok(match opened {
        Some(plain) => Ok(json!({ "plain": hex(&plain) })),
        None => Err(refuse("tag_invalid")),
    })
}

fn open_as_given(entry: &Value) -> Result<Option<Vec<u8>>, Broken> {
    let place = place(entry)?;
    let subkey = subkey(entry, place.key_id, &place.publisher)?;
    let mut ct = bytes_of(entry, "ct")?;
    let opened = subkey.open(&place, &array_of(entry, "nonce")?, &mut ct);
    Ok(opened.ok().map(|text| text.to_vec()))
}

/// The entry with one bit of an input changed, each in turn: of a number the lower 53, of a letter the lower seven, of bytes all.
fn flips(entry: &Value, name: &str) -> Result<Vec<Value>, Broken> {
    let with = |value: Value| {
        let mut changed = entry.clone();
        changed[name] = value;
        changed
    };
    if let Some(number) = entry[name].as_u64() {
        return Ok((0..53)
            .map(|bit| with((number ^ 1 << bit).into()))
            .collect());
    }
    let (bytes, bits) = match name {
        "topic" => (text(entry, name)?.as_bytes().to_vec(), 7),
        _ => (bytes_of(entry, name)?, 8),
    };
    let mut all = Vec::new();
    for at in 0..bytes.len() {
        for bit in 0..bits {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            all.push(with(match name {
                "topic" => String::from_utf8(changed)
                    .map_err(|_| "has a topic that is not ASCII")?
                    .into(),
                _ => hex(&changed).into(),
            }));
        }
    }
    Ok(all)
}

fn event(entry: &Value) -> Result<Judged, Broken> {
    let object = bytes_of(entry, "hex")?;
    let (publication, _) =
        Publication::open(&object, Profile::ED25519).map_err(|fault| fault.to_string())?;
    let (sealed, place) = publication.sealed().ok_or("is not sealed")?;
    let subkey = subkey(entry, place.key_id, &place.publisher)?;
    let mut buffer = vec![0; sealed.ct.len()];
    let Ok(payload) = publication.unseal(&subkey, &mut buffer) else {
        return Ok(Err(refuse("tag_invalid")));
    };
    if entry.get("entropy").is_some() {
        let seal = Seal {
            key_id: place.key_id,
            subkey: &subkey,
            entropy: array_of(entry, "entropy")?,
        };
        if sealed_again(&publication, payload, &seal)? != object {
            return Err("seals to other bytes".to_owned());
        }
    }
    Ok(Ok(
        json!({ "key_id": hex(sealed.key_id), "payload": hex(payload) }),
    ))
}

fn sealed_again(
    publication: &Publication<'_>,
    payload: &[u8],
    seal: &Seal<'_>,
) -> Result<Vec<u8>, Broken> {
    let signer = SIGNERS
        .map(|byte| SecretKey::from_seed([byte; 32]))
        .find(|signer| signer.public_key() == *publication.key)
        .ok_or("is by none of the signers")?;
    let draft = Draft {
        realm: publication.realm,
        topic: publication.topic,
        publisher: publication.publisher,
        epoch: publication.epoch,
        seq: publication.seq,
        published_at: publication.published_at,
        ttl_ms: publication.ttl_ms,
        one: publication.one,
        body: Body::Payload(payload),
    };
    let mut bytes = Vec::new();
    draft
        .sign_sealed(&signer, seal, &mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}
