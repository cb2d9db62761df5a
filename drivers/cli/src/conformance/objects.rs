//! Signed objects, publications, and the signature alone.
//!
//! Decides: nothing. Leaves to others: the checks, the core's. Believes: the wall time each entry names. Bounded by: the entry.

use serde_json::{Value, json};
use tidings::WallMs;
use tidings::crypto::{Profile, PublicKey, SecretKey, Signer};
use tidings::wire::object::{
    CONNECT_PROOF_LABEL, GRANT_LABEL, HELLO_PROOF_LABEL, Object, PUBLICATION_LABEL, RECORD_LABEL,
    REPLY_LABEL, REQUEST_LABEL,
};
use tidings::wire::{Body, Publication};

use super::{Broken, Judged, array_of, bytes_of, hex, refuse, text};

const PROFILE: Profile = Profile::ED25519;

fn label(purpose: &str) -> Result<&'static str, Broken> {
    Ok(match purpose {
        "publication" => PUBLICATION_LABEL,
        "connect" => CONNECT_PROOF_LABEL,
        "hello" => HELLO_PROOF_LABEL,
        "record" => RECORD_LABEL,
        "request" => REQUEST_LABEL,
        "reply" => REPLY_LABEL,
        "grant" => GRANT_LABEL,
        other => return Err(format!("has the unknown purpose {other}")),
    })
}

/// What is signed of an object under `label`.
fn signed(label: &str, key: &PublicKey, tbs: &[u8]) -> String {
    hex(&[label.as_bytes(), &[0], key.hash(), tbs].concat())
}

pub(super) fn objects(entry: &Value) -> Result<Judged, Broken> {
    let bytes = bytes_of(entry, "hex")?;
    let label = label(text(entry, "purpose")?)?;
    let opened =
        Object::parse(&bytes).and_then(|object| Ok((object, object.open(PROFILE, label)?)));
    Ok(match opened {
        Ok((object, key)) => Ok(json!({
            "key": hex(object.key),
            "tbs": hex(object.tbs),
            "signature": hex(object.signature),
            "label": label,
            "signed": signed(label, &key, object.tbs),
        })),
        Err(fault) => Err(refuse(fault.text())),
    })
}

pub(super) fn publications(entry: &Value) -> Result<Judged, Broken> {
    let bytes = bytes_of(entry, "hex")?;
    let now = WallMs::new(entry["now"].as_u64().ok_or("has no now")?);
    let (publication, key) = match Publication::open(&bytes, PROFILE) {
        Ok(opened) => opened,
        Err(fault) => return Ok(Err(refuse(fault.text()))),
    };
    if let Err((fault, _)) = publication.freshness(now) {
        return Ok(Err(refuse(fault.text())));
    }
    let mut out = json!({
        "publication_hash": publication.hash().to_string(),
        "expires_at": publication.expires_at().as_millis(),
        "signed": signed(PUBLICATION_LABEL, &key, publication.tbs),
        "publisher": publication.publisher.to_string(),
        "realm": publication.realm.to_string(),
        "topic": publication.topic,
        "seq": publication.seq,
        "published_at": publication.published_at.as_millis(),
    });
    if let Some(epoch) = publication.epoch {
        out["epoch"] = epoch.into();
    }
    if let Some(ttl) = publication.ttl_ms {
        out["ttl_ms"] = ttl.into();
    }
    if publication.one {
        out["one"] = 1.into();
    }
    if let Body::Sealed(sealed) = publication.body {
        out["sealed"] = json!({
            "ct": hex(sealed.ct),
            "nonce": hex(sealed.nonce),
            "key_id": hex(sealed.key_id),
            "scheme": sealed.scheme,
        });
    }
    Ok(Ok(out))
}

/// RFC 8032: keys, signatures, and for entries with a seed that it signs to the same bytes.
pub(super) fn rfc8032(entry: &Value) -> Result<Judged, Broken> {
    let message = bytes_of(entry, "message")?;
    let carried = bytes_of(entry, "key")?.try_into().ok();
    let Some(key) = carried.and_then(|key: [u8; 32]| PublicKey::decode(PROFILE, &key).ok()) else {
        return Ok(Err(refuse("bad_key_form")));
    };
    let signature = array_of(entry, "signature")?;
    if !key.verify_parts(&[&message], &signature) {
        return Ok(Err(refuse("signature_invalid")));
    }
    if entry.get("seed").is_some() {
        let secret = SecretKey::from_seed(array_of(entry, "seed")?);
        if secret.public_key() != *key.as_bytes() || secret.sign(&[&message]) != Ok(signature) {
            return Err("its seed gives another key or signature".to_owned());
        }
    }
    Ok(Ok(true.into()))
}
