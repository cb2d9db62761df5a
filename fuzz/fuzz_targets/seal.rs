//! The event seal: what is sealed opens to the same text at its place and nowhere else; a changed bit anywhere, or bytes nobody sealed, never
//! open, and what does not open is left as it was. A cache of subkeys answers what deriving anew answers.
//!
//! As a client does it, under both schemes: a publication with such a body is read and opened; one with a changed bit is not read, or says the
//! same of everything the seal is bound to, or does not open. And what is asked and answered about keys: what is read is what was written, and
//! no changed bit is read as the same.
//!
//! Input: 32 bytes of key, 8 of its id, 32 of entropy, 32 of realm, 8 each for epoch, seq and time, one that says which bit to change, and
//! one for others, and the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::code::SealPolicy;
use tidings::crypto::{
    OpenError, PeriodKey, Place, SEAL_TAG, Subkey, Subkey1, SubkeyCache, SubkeySlot,
};
use tidings::keyring::{KeyPeriod, Which, read_question, write_answer, write_question};
use tidings::sim::{FAKE_PROFILE, fake_signer};
use tidings::wire::{self, Body, Draft, Publication, Sealed};
use tidings::{KeyPeriods, NodeId, RealmId, Seed, WallMs};
use tidings_fuzz::cbor;

const TOPIC: &str = "weather/acme/app/days/measured_v1";

fuzz_target!(|data: &[u8]| {
    run(data);
});

/// What the input says.
struct Said<'a> {
    period: PeriodKey,
    secret: [u8; 32],
    entropy: [u8; 32],
    place: Place<'a>,
    /// Chooses bits and bytes to change.
    flip: u8,
    other: u8,
    text: &'a [u8],
}

fn run(mut data: &[u8]) -> Option<()> {
    let secret: [u8; 32] = take(&mut data)?;
    let id: [u8; 8] = take(&mut data)?;
    let entropy: [u8; 32] = take(&mut data)?;
    let realm: [u8; 32] = take(&mut data)?;
    let [epoch, seq, at]: [u64; 3] =
        [(); 3].map(|()| take(&mut data).map_or(1, u64::from_be_bytes) >> 11);
    let [flip, other]: [u8; 2] = take(&mut data)?;
    let said = Said {
        period: PeriodKey::new(id, secret),
        secret,
        entropy,
        place: Place {
            realm: RealmId::new(realm),
            topic: TOPIC,
            publisher: NodeId::new([other; 32]),
            epoch: (epoch > 0).then_some(epoch),
            seq,
            published_at: WallMs::new(at),
            key_id: id,
        },
        flip,
        other,
        text: data,
    };
    bare(&said);
    let payload = wire::to_payload(data).expect("a list of numbers");
    for plain in [data, &payload] {
        for scheme in [1, 2] {
            carried(&said, plain, scheme);
        }
    }
    pulls(&said);
    Some(())
}

/// The same place, but for one thing. To the first two things a text is bound under scheme 2 alone.
fn elsewhere<'a>(place: &Place<'a>) -> [Place<'a>; 7] {
    let Place {
        epoch,
        key_id,
        realm,
        publisher,
        ..
    } = *place;
    let not = |id: &[u8; 32]| id.map(|byte| !byte);
    // There is none before the first, and none after the last.
    let another = epoch
        .filter(|epoch| *epoch > 1)
        .map_or(2, |epoch| epoch - 1);
    [
        Place {
            epoch: Some(another),
            ..*place
        },
        Place {
            key_id: key_id.map(|byte| !byte),
            ..*place
        },
        Place {
            seq: place.seq ^ 1,
            ..*place
        },
        Place {
            published_at: WallMs::new(place.published_at.as_millis() ^ 1),
            ..*place
        },
        Place {
            topic: "weather/acme/app/days/measured_v2",
            ..*place
        },
        Place {
            publisher: NodeId::new(not(publisher.as_bytes())),
            ..*place
        },
        Place {
            realm: RealmId::new(not(realm.as_bytes())),
            ..*place
        },
    ]
}

/// The cipher alone.
fn bare(said: &Said<'_>) {
    let Said {
        period,
        entropy,
        place,
        text,
        ..
    } = said;
    let flip = said.flip;
    let subkey = Subkey::derive(period, &place.publisher);
    let mut sealed = text.to_vec();
    let (nonce, tag) = subkey
        .seal(place, entropy, &mut sealed)
        .expect("short enough");
    sealed.extend_from_slice(&tag);
    assert_eq!(sealed.len(), text.len() + SEAL_TAG);

    let mut cache = SubkeyCache::new(
        [const { SubkeySlot::EMPTY }; 2],
        &mut Seed::new(said.secret).fork("fuzz"),
    );
    let kept = cache.subkey(period, &place.publisher);
    let mut opened = sealed.clone();
    assert_eq!(
        kept.open(place, &nonce, &mut opened).ok().as_deref(),
        Some(*text)
    );

    for wrong in &elsewhere(place) {
        refuses(&subkey, wrong, &nonce, &sealed);
    }
    refuses(
        &Subkey::derive(period, &NodeId::new([!said.other; 32])),
        place,
        &nonce,
        &sealed,
    );
    let mut changed = sealed.clone();
    let at = usize::from(flip) % changed.len();
    changed[at] ^= 1 << (flip % 8);
    refuses(&subkey, place, &nonce, &changed);
    let mut other_nonce = nonce;
    other_nonce[usize::from(flip) % 12] ^= 1;
    refuses(&subkey, place, &other_nonce, &sealed);
    // Nobody sealed the text as it is.
    refuses(&subkey, place, &nonce, text);
}

fn refuses(subkey: &Subkey, place: &Place<'_>, nonce: &[u8; 12], sealed: &[u8]) {
    let mut bytes = sealed.to_vec();
    assert!(
        subkey.open(place, nonce, &mut bytes).is_err(),
        "it opens elsewhere"
    );
    assert_eq!(bytes, sealed, "what does not open stays as it was");
}

/// A publication with such a body, from its publisher to its reader.
fn carried(said: &Said<'_>, plain: &[u8], scheme: u8) {
    let place = Place {
        seq: said.place.seq.max(1),
        ..said.place
    };
    let publisher = &place.publisher;
    let mut ct = plain.to_vec();
    let sealed = match scheme {
        1 => {
            let nonce = *said.entropy.first_chunk().expect("longer");
            let subkey = Subkey1::derive(&said.period, publisher);
            subkey.seal(&place, &nonce, &mut ct).map(|tag| (nonce, tag))
        }
        _ => Subkey::derive(&said.period, publisher).seal(&place, &said.entropy, &mut ct),
    };
    let (nonce, tag) = sealed.expect("short enough");
    ct.extend_from_slice(&tag);
    let sealed = Sealed {
        ct: &ct,
        nonce: &nonce,
        key_id: &place.key_id,
        scheme,
    };
    let object = object(&place, sealed);
    let is_payload = cbor::parse(plain, true).is_ok_and(|payload| payload.depth() <= 63);
    let wanted = is_payload.then(|| plain.to_vec());
    assert_eq!(open(said, &object), wanted);

    for (n, wrong) in elsewhere(&place).iter().enumerate() {
        let key_id = &wrong.key_id;
        let moved = self::object(wrong, Sealed { key_id, ..sealed });
        let opens = wanted.clone().filter(|_| scheme == 1 && n < 2);
        assert_eq!(open(said, &moved), opens, "moved");
    }
    let other = Sealed {
        scheme: 3 - scheme,
        ..sealed
    };
    assert_eq!(
        open(said, &self::object(&place, other)),
        None,
        "another scheme"
    );
    let (flip, around) = (usize::from(said.flip), usize::from(said.other) * 3);
    for at in [flip * object.len() / 256, around % object.len()] {
        let mut changed = object.clone();
        changed[at] ^= 1 << (flip % 8);
        if open(said, &changed).is_some() {
            let read = Publication::parse(&changed, FAKE_PROFILE).expect("it opened");
            let (its, there) = read.sealed().expect("it opened");
            let unbound = Place {
                epoch: place.epoch,
                key_id: place.key_id,
                ..there
            };
            assert_eq!((its.ct, its.nonce, its.scheme), (&ct[..], &nonce, scheme));
            assert_eq!(
                if scheme == 1 { unbound } else { there },
                place,
                "bit at {at}"
            );
        }
    }
}

fn object(place: &Place<'_>, sealed: Sealed<'_>) -> Vec<u8> {
    let draft = Draft {
        realm: place.realm,
        topic: place.topic,
        publisher: place.publisher,
        epoch: place.epoch,
        seq: place.seq,
        published_at: place.published_at,
        ttl_ms: place.seq.is_multiple_of(2).then_some(1000),
        one: place.seq.is_multiple_of(3),
        body: Body::Sealed(sealed),
    };
    let mut object = Vec::new();
    let signed = draft.sign(&fake_signer(1), &mut object);
    signed.expect("the fake signer signs");
    object
}

/// As a client does it.
fn open(said: &Said<'_>, object: &[u8]) -> Option<Vec<u8>> {
    let read = Publication::parse(object, FAKE_PROFILE).ok()?;
    let (sealed, place) = read.sealed()?;
    let mut text = vec![0; sealed.ct.len()];
    let subkey = Subkey::derive(&said.period, &place.publisher);
    let opened = match read.unseal(&subkey, &mut text) {
        Err(OpenError::OtherScheme) => read.unseal_otherwise(&said.period, &mut text),
        opened => opened,
    };
    let opened = opened.ok().map(<[u8]>::to_vec);
    let short = &mut text[1..];
    let small = match read.unseal(&subkey, short) {
        Err(OpenError::OtherScheme) => read.unseal_otherwise(&said.period, short),
        small => small,
    };
    let needed = sealed.ct.len();
    assert_eq!(small, Err(OpenError::TooSmall { needed }));
    opened
}

/// What a member asks, and what it is answered.
fn pulls(said: &Said<'_>) {
    let prefix = core::str::from_utf8(said.text).unwrap_or(TOPIC);
    let change = |bytes: &[u8]| {
        let mut changed = bytes.to_vec();
        changed[usize::from(said.flip) * bytes.len() / 256] ^= 1 << (said.other % 8);
        changed
    };
    let which = match said.flip % 2 {
        0 => Which::Current,
        _ => Which::One(said.place.key_id),
    };
    let mut question = Vec::new();
    write_question(which, prefix, &mut question);
    assert_eq!(read_question(&question), Ok((which, prefix)));
    let changed = change(&question);
    assert_ne!(read_question(&changed), Ok((which, prefix)));

    // Until when it opens is below the wire's limit as well.
    let (from, until) = (said.place.published_at, WallMs::new(said.place.seq / 2));
    let period = || KeyPeriod::new(said.place.key_id, said.secret, from, until);
    let policy = SealPolicy::ALL[usize::from(said.other) % 3];
    let written = |answer: &KeyPeriods| {
        let mut bytes = Vec::new();
        write_answer(answer.policy, prefix, &answer.periods, &mut bytes);
        bytes
    };
    let periods = (0..said.flip % 4).map(|_| period()).collect();
    let answer = written(&KeyPeriods { policy, periods });
    let read = KeyPeriods::read(&answer, prefix);
    assert_eq!(read.is_ok(), (1..=2).contains(&(said.flip % 4)));
    if let Ok(read) = read {
        assert_eq!(written(&read), answer);
        if let Ok(read) = KeyPeriods::read(&change(&answer), prefix) {
            assert_ne!(written(&read), answer, "a changed bit does not show");
        }
    }
}

fn take<const N: usize>(data: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = data.split_first_chunk()?;
    *data = rest;
    Some(*first)
}
