//! WIRE.md sections 5 and 6 over trees: what a publication says, or the first check that fails. Freshness and the signature apart.

use crate::cbor::{Tree, parse, parse_tbs};
use crate::topic;

/// What a publication says.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub key: Vec<u8>,
    pub tbs: Vec<u8>,
    pub signature: Vec<u8>,
    pub publisher: Vec<u8>,
    pub realm: Vec<u8>,
    pub topic: String,
    pub epoch: Option<i64>,
    pub seq: i64,
    pub published_at: i64,
    pub ttl_ms: Option<i64>,
    pub one: bool,
    pub sealed: bool,
}

const MALFORMED: &str = "malformed";

/// The checks up to `alg_mismatch`. `key_form` says whether 32 bytes are a key.
pub fn read(
    object: &[u8],
    alg: &str,
    key_form: impl FnOnce(&[u8]) -> bool,
) -> Result<Said, &'static str> {
    let [key, tbs, signature] = fields(
        &parse(object, false).map_err(|_| MALFORMED)?,
        ["key", "tbs", "signature"],
    )
    .ok_or(MALFORMED)?
    .map(bytes);
    let (key, tbs, signature) = (
        key.ok_or(MALFORMED)?,
        tbs.ok_or(MALFORMED)?,
        signature.ok_or(MALFORMED)?,
    );
    if key.len() != 32 || !key_form(&key) {
        return Err("bad_key_form");
    }
    if signature.len() != 64 {
        return Err(MALFORMED);
    }
    let Ok(Tree::Map(entries)) = parse_tbs(&tbs) else {
        return Err(MALFORMED);
    };
    let mut said = Said {
        key,
        tbs,
        signature,
        ..EMPTY
    };
    let mut named = String::new();
    let mut missing = vec!["alg", "seq", "realm", "topic", "publisher", "published_at"];
    let mut bodies = 0;
    for (name, value) in entries {
        let Tree::Text(name) = name else {
            return Err(MALFORMED);
        };
        missing.retain(|one| *one != name);
        match (name.as_str(), value) {
            ("alg", Tree::Text(text)) => named = text,
            ("one", Tree::Integer(1)) => said.one = true,
            ("seq", Tree::Integer(seq @ 1..EXACT)) => said.seq = seq,
            ("epoch", Tree::Integer(epoch @ 1..EXACT)) => said.epoch = Some(epoch),
            ("realm", Tree::Bytes(realm)) if realm.len() == 32 => said.realm = realm,
            ("topic", Tree::Text(text)) if topic::fault(&text, false).is_none() => {
                said.topic = text;
            }
            ("ttl_ms", Tree::Integer(ttl @ 0..=3_600_000)) => said.ttl_ms = Some(ttl),
            ("publisher", Tree::Bytes(id)) if id.len() == 32 => said.publisher = id,
            ("published_at", Tree::Integer(at @ 0..EXACT)) => said.published_at = at,
            ("payload", _) => bodies += 1,
            ("sealed", value) if is_sealed(&value) => {
                said.sealed = true;
                bodies += 1;
            }
            _ => return Err(MALFORMED),
        }
    }
    if !missing.is_empty() || bodies != 1 {
        return Err(MALFORMED);
    }
    if named == alg {
        Ok(said)
    } else {
        Err("alg_mismatch")
    }
}

const EXACT: i64 = 1 << 53;

const EMPTY: Said = Said {
    key: Vec::new(),
    tbs: Vec::new(),
    signature: Vec::new(),
    publisher: Vec::new(),
    realm: Vec::new(),
    topic: String::new(),
    epoch: None,
    seq: 0,
    published_at: 0,
    ttl_ms: None,
    one: false,
    sealed: false,
};

/// The values of a map that holds exactly these keys.
fn fields<const N: usize>(tree: &Tree, keys: [&str; N]) -> Option<[Tree; N]> {
    let Tree::Map(entries) = tree else {
        return None;
    };
    let value = |key: &str| {
        let found = entries
            .iter()
            .find(|(name, _)| *name == Tree::Text(key.into()));
        found.map(|(_, value)| value.clone())
    };
    let values: Vec<Tree> = keys.iter().filter_map(|key| value(key)).collect();
    if entries.len() == N {
        values.try_into().ok()
    } else {
        None
    }
}

fn bytes(tree: Tree) -> Option<Vec<u8>> {
    match tree {
        Tree::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn is_sealed(tree: &Tree) -> bool {
    let Some([ct, nonce, key_id, scheme]) = fields(tree, ["ct", "nonce", "key_id", "scheme"])
    else {
        return false;
    };
    let long = |tree: Tree, fits: fn(usize) -> bool| bytes(tree).is_some_and(|it| fits(it.len()));
    long(ct, |len| len >= 16)
        && long(nonce, |len| len == 12)
        && long(key_id, |len| len == 8)
        && matches!(scheme, Tree::Integer(1 | 2))
}
