//! Publications against their model, under either profile: the same first fault, the same fields, and the same bytes when written again.
//! Then, with a signer at hand, one byte of a signed publication is changed, and it must not be taken.
//!
//! Input: a byte that chooses the profile and the byte to change, then an object; or, where that is refused, a body to be signed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::crypto::{Profile, PublicKey, Signer};
use tidings::sim::{FAKE_PROFILE, fake_signer};
use tidings::wire::{Body, Draft, Publication};
use tidings::{NodeId, RealmId, WallMs};
use tidings_fuzz::{cbor, publication as model};

fuzz_target!(|data: &[u8]| {
    let Some((&mode, bytes)) = data.split_first() else {
        return;
    };
    let profile = if mode & 1 == 0 {
        Profile::ED25519
    } else {
        FAKE_PROFILE
    };
    received(bytes, profile);
    if cbor::parse(bytes, true).is_ok_and(|payload| payload.depth() <= 63) {
        signed(bytes, usize::from(mode));
    }
});

fn received(bytes: &[u8], profile: Profile) {
    let decode = |key: &[u8]| PublicKey::decode(profile, key.try_into().ok()?).ok();
    let said = model::read(bytes, profile.alg(), |key| decode(key).is_some());
    let opened = Publication::open(bytes, profile);
    let said = match said {
        Ok(said) => said,
        Err(reason) => {
            assert_eq!(opened.err().map(|fault| fault.text()), Some(reason));
            return;
        }
    };
    let key = decode(&said.key).expect("the model saw a key");
    let signature = said.signature[..]
        .try_into()
        .expect("the model saw 64 bytes");
    let late = if said.publisher != key.node_id().as_bytes() {
        Some("key_id_mismatch")
    } else if !key.verify("TIDINGS-PUBLICATION-V1", &said.tbs, signature) {
        Some("signature_invalid")
    } else {
        None
    };
    assert_eq!(opened.err().map(|fault| fault.text()), late);
    let parsed = Publication::parse(bytes, profile).expect("what opens parses");
    assert_eq!(parsed.key[..], said.key);
    assert_eq!(parsed.tbs, said.tbs);
    assert_eq!(parsed.signature[..], said.signature);
    assert_eq!(parsed.publisher.as_bytes()[..], said.publisher);
    assert_eq!(parsed.realm.as_bytes()[..], said.realm);
    assert_eq!(parsed.topic, said.topic);
    assert_eq!(parsed.epoch, said.epoch.map(|epoch| epoch as u64));
    assert_eq!(parsed.seq, said.seq as u64);
    assert_eq!(parsed.published_at.as_millis(), said.published_at as u64);
    assert_eq!(parsed.ttl_ms, said.ttl_ms.map(|ttl| ttl as u32));
    assert_eq!(parsed.one, said.one);
    assert_eq!(matches!(parsed.body, Body::Sealed(_)), said.sealed);
    let mut again = Vec::new();
    draft(&parsed).encode_tbs(profile, &mut again);
    assert_eq!(again, parsed.tbs, "a publication has one encoding");
    freshness(&parsed);
}

fn draft<'a>(publication: &Publication<'a>) -> Draft<'a> {
    Draft {
        realm: publication.realm,
        topic: publication.topic,
        publisher: publication.publisher,
        epoch: publication.epoch,
        seq: publication.seq,
        published_at: publication.published_at,
        ttl_ms: publication.ttl_ms,
        one: publication.one,
        body: publication.body,
    }
}

/// Both ends are inclusive, whatever the numbers are.
fn freshness(publication: &Publication<'_>) {
    let at = i128::from(publication.published_at.as_millis());
    let life = i128::from(publication.ttl_ms.unwrap_or(600_000));
    let ends = [at - 300_000, at + life + 300_000];
    for near in ends.into_iter().flat_map(|end| [end - 1, end, end + 1]) {
        let Ok(now) = u64::try_from(near) else {
            continue;
        };
        let live = at <= near + 300_000 && near <= at + life + 300_000;
        assert_eq!(publication.freshness(WallMs::new(now)).is_ok(), live);
    }
}

fn signed(payload: &[u8], change: usize) {
    let signer = fake_signer(1);
    let draft = Draft {
        realm: RealmId::of_name("fuzz"),
        topic: "a/b",
        publisher: NodeId::of_key(FAKE_PROFILE.name(), &signer.public_key()),
        epoch: (change & 2 == 0).then_some(7),
        seq: 1 + payload.len() as u64,
        published_at: WallMs::new(1_700_000_000_000),
        ttl_ms: (change & 4 == 0).then_some(1000),
        one: change & 8 == 0,
        body: Body::Payload(payload),
    };
    let mut object = Vec::new();
    draft
        .sign(&signer, &mut object)
        .expect("the fake signer signs");
    assert_eq!(object.len(), draft.object_len(FAKE_PROFILE));
    let (parsed, key) = Publication::open(&object, FAKE_PROFILE).expect("what was signed opens");
    assert_eq!(parsed.body, draft.body);
    assert_eq!(key.node_id(), draft.publisher);
    let at = (change * 31 + payload.len()) % object.len();
    object[at] ^= 1 << (change % 8);
    assert!(
        Publication::open(&object, FAKE_PROFILE).is_err(),
        "byte {at} may be changed"
    );
}
