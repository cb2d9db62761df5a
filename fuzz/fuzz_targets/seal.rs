//! The event seal: what is sealed opens to the same text at its place and nowhere else; a changed bit anywhere, or bytes nobody sealed, never
//! open, and what does not open is left as it was. A cache of subkeys answers what deriving anew answers.
//!
//! Input: 32 bytes of key, 8 of its id, 32 of entropy, 32 of realm, 8 each for epoch, seq and time, one that says which bit to change, and
//! the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::crypto::{PeriodKey, Place, SEAL_TAG, Subkey, SubkeyCache, SubkeySlot};
use tidings::{NodeId, RealmId, Seed, WallMs};

const TOPIC: &str = "weather/acme/app/days/measured_v1";

fuzz_target!(|data: &[u8]| {
    run(data);
});

fn run(mut data: &[u8]) -> Option<()> {
    let secret: [u8; 32] = take(&mut data)?;
    let id: [u8; 8] = take(&mut data)?;
    let entropy: [u8; 32] = take(&mut data)?;
    let realm: [u8; 32] = take(&mut data)?;
    let [epoch, seq, at]: [u64; 3] =
        [(); 3].map(|()| take(&mut data).map_or(1, u64::from_be_bytes) >> 11);
    let [flip, other]: [u8; 2] = take(&mut data)?;
    let period = PeriodKey::new(id, secret);
    let place = Place {
        realm: RealmId::new(realm),
        topic: TOPIC,
        publisher: NodeId::new([other; 32]),
        epoch: (epoch > 0).then_some(epoch),
        seq,
        published_at: WallMs::new(at),
        key_id: id,
    };
    let subkey = Subkey::derive(&period, &place.publisher);
    let mut sealed = data.to_vec();
    let (nonce, tag) = subkey
        .seal(&place, &entropy, &mut sealed)
        .expect("short enough");
    sealed.extend_from_slice(&tag);
    assert_eq!(sealed.len(), data.len() + SEAL_TAG);

    let mut cache = SubkeyCache::new(
        [const { SubkeySlot::EMPTY }; 2],
        &mut Seed::new(secret).fork("fuzz"),
    );
    let kept = cache.subkey(&period, &place.publisher);
    let mut opened = sealed.clone();
    assert_eq!(
        kept.open(&place, &nonce, &mut opened).ok().as_deref(),
        Some(data)
    );

    let elsewhere = [
        Place {
            seq: seq ^ 1,
            ..place
        },
        Place {
            epoch: Some(epoch + 1),
            ..place
        },
        Place {
            published_at: WallMs::new(at ^ 1),
            ..place
        },
        Place {
            topic: "weather/acme/app/days/measured_v2",
            ..place
        },
        Place {
            publisher: NodeId::new([!other; 32]),
            ..place
        },
        Place {
            key_id: id.map(|byte| !byte),
            ..place
        },
    ];
    for wrong in &elsewhere {
        refuses(&subkey, wrong, &nonce, &sealed);
    }
    refuses(
        &Subkey::derive(&period, &NodeId::new([!other; 32])),
        &place,
        &nonce,
        &sealed,
    );
    let mut changed = sealed.clone();
    let at = usize::from(flip) % changed.len();
    changed[at] ^= 1 << (flip % 8);
    refuses(&subkey, &place, &nonce, &changed);
    let mut other_nonce = nonce;
    other_nonce[usize::from(flip) % 12] ^= 1;
    refuses(&subkey, &place, &other_nonce, &sealed);
    // Nobody sealed the text as it is.
    refuses(&subkey, &place, &nonce, data);
    Some(())
}

fn refuses(subkey: &Subkey, place: &Place<'_>, nonce: &[u8; 12], sealed: &[u8]) {
    let mut bytes = sealed.to_vec();
    assert!(
        subkey.open(place, nonce, &mut bytes).is_err(),
        "it opens elsewhere"
    );
    assert_eq!(bytes, sealed, "what does not open stays as it was");
}

fn take<const N: usize>(data: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = data.split_first_chunk()?;
    *data = rest;
    Some(*first)
}
