//! WIRE.md section 11 over trees: the lanes and stations of committed positions, or the first check that fails.

use crate::cbor::{Tree, parse};
use crate::topic;

/// Publisher, topic, epoch, seq and what nobody was told of.
pub type Lane = (Vec<u8>, String, i64, i64, Vec<(i64, i64)>);
/// Station, mesh, run, offset and from.
pub type Station = (Vec<u8>, Vec<u8>, Vec<u8>, i64, i64);

/// What committed positions hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    pub lanes: Vec<Lane>,
    pub stations: Vec<Station>,
}

const EXACT: i64 = 1 << 53;

/// The checks in the order of section 3.
pub fn read(bytes: &[u8]) -> Result<Committed, &'static str> {
    let Tree::Map(entries) = parse(bytes, false)? else {
        return Err("not_a_map");
    };
    let mut named = Vec::new();
    for (name, value) in entries {
        let Tree::Text(name) = name else {
            return Err("bad_field");
        };
        named.push((name, value));
    }
    match named.iter().find(|(name, _)| name == "version") {
        Some((_, Tree::Integer(1))) => {}
        Some(_) => return Err("bad_version"),
        None => return Err("missing_field"),
    }
    let (mut lanes, mut stations) = (None, None);
    for (name, value) in named {
        match name.as_str() {
            "version" => {}
            "lanes" => {
                let place = |lane: &Lane| (lane.0.clone(), lane.1.clone(), lane.2);
                lanes = Some(rising(value, lane, place).ok_or("bad_field")?);
            }
            "stations" => {
                let place = |station: &Station| station.0.clone();
                stations = Some(rising(value, station, place).ok_or("bad_field")?);
            }
            _ => return Err("unknown_field"),
        }
    }
    let (lanes, stations) = lanes.zip(stations).ok_or("missing_field")?;
    Ok(Committed { lanes, stations })
}

/// An array whose items each lie behind the one before.
fn rising<T, P: Ord>(
    tree: Tree,
    item: fn(Tree) -> Option<T>,
    place: fn(&T) -> P,
) -> Option<Vec<T>> {
    let Tree::Array(items) = tree else {
        return None;
    };
    let items: Vec<T> = items.into_iter().map(item).collect::<Option<_>>()?;
    let rises = items.windows(2).all(|two| place(&two[0]) < place(&two[1]));
    rises.then_some(items)
}

/// The values of a map that holds exactly these keys.
fn values<const N: usize>(tree: Tree, keys: [&str; N]) -> Option<[Tree; N]> {
    let Tree::Map(entries) = tree else {
        return None;
    };
    if entries.len() != N {
        return None;
    }
    let value = |key: &str| {
        let mut entries = entries.iter();
        entries.find_map(|(name, value)| (*name == Tree::Text(key.into())).then_some(value))
    };
    let values: Option<Vec<Tree>> = keys.iter().map(|key| value(key).cloned()).collect();
    values?.try_into().ok()
}

fn lane(tree: Tree) -> Option<Lane> {
    match values(tree, ["publisher", "topic", "epoch", "seq", "untold"])? {
        [
            Tree::Bytes(publisher),
            Tree::Text(topic),
            Tree::Integer(epoch @ 1..EXACT),
            Tree::Integer(seq @ 0..EXACT),
            Tree::Array(ranges),
        ] if publisher.len() == 32 && topic::fault(&topic, false).is_none() => {
            Some((publisher, topic, epoch, seq, untold(ranges, seq)?))
        }
        _ => None,
    }
}

/// Firsts and lasts by turns: each above all before it, a first by more than one.
fn untold(numbers: Vec<Tree>, seq: i64) -> Option<Vec<(i64, i64)>> {
    if numbers.len() % 2 == 1 || numbers.len() > 32 {
        return None;
    }
    let mut ranges = Vec::new();
    let mut before = -1;
    for range in numbers.chunks(2) {
        let [Tree::Integer(first), Tree::Integer(last)] = range else {
            return None;
        };
        if *first < before + 2 || last < first || *last > seq {
            return None;
        }
        ranges.push((*first, *last));
        before = *last;
    }
    Some(ranges)
}

fn station(tree: Tree) -> Option<Station> {
    let [station, mesh, position, from] = values(tree, ["station", "mesh", "position", "from"])?;
    match (station, mesh, values(position, ["run", "offset"])?, from) {
        (
            Tree::Bytes(station),
            Tree::Bytes(mesh),
            [Tree::Bytes(run), Tree::Integer(offset @ 0..EXACT)],
            Tree::Integer(from @ 0..EXACT),
        ) if (station.len(), mesh.len(), run.len()) == (32, 32, 8) => {
            Some((station, mesh, run, offset, from))
        }
        _ => None,
    }
}
