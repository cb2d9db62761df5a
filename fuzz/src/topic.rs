//! WIRE.md section 7, segment by segment.

/// Why a text is no topic (or no filter), if it is none.
pub fn fault(text: &str, filter: bool) -> Option<&'static str> {
    let segments: Vec<&str> = text.split('/').collect();
    let last = segments.len() - 1;
    let stars = |(at, segment): (usize, &&str)| {
        let wildcard = *segment == "*" || (*segment == "**" && at == last);
        segment.contains('*') && !(filter && wildcard)
    };
    if text.is_empty() {
        Some("empty")
    } else if text.len() > 512 {
        Some("too_long")
    } else if segments.len() > 16 {
        Some("too_many_segments")
    } else if segments.iter().any(|segment| segment.is_empty()) {
        Some("empty_segment")
    } else if segments.iter().enumerate().any(stars) {
        Some("wildcard")
    } else {
        None
    }
}

/// Whether a filter matches a topic, both well formed.
pub fn matches(filter: &str, topic: &str) -> bool {
    fn from(filter: &[&str], topic: &[&str]) -> bool {
        match (filter, topic) {
            ([], []) => true,
            (["**"], [_, ..]) => true,
            (["*", filter @ ..], [_, topic @ ..]) => from(filter, topic),
            ([want, filter @ ..], [have, topic @ ..]) => want == have && from(filter, topic),
            _ => false,
        }
    }
    let (filter, topic): (Vec<&str>, Vec<&str>) =
        (filter.split('/').collect(), topic.split('/').collect());
    let wild_first = filter[0].contains('*');
    !(wild_first && topic[0].starts_with('_')) && from(&filter, &topic)
}

/// Why a text is no name, if it is none: the reason and the segment it names.
pub fn name_fault(text: &str) -> Option<(&'static str, Option<&'static str>)> {
    let segments: Vec<&str> = text.split('/').collect();
    let [realm, org, app, domain, last] = segments[..] else {
        return Some(("structure", None));
    };
    if text.len() > 512 {
        return Some(("too_long", None));
    }
    let Some((name, version)) = last.rsplit_once("_v") else {
        return Some(("version", Some("name")));
    };
    let digits = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || version.starts_with('0') || version.parse::<u32>().is_err() {
        return Some(("version", Some("name")));
    }
    match (org, app) {
        ("_realm", "_realm") => {}
        ("_realm", _) => return Some(("tier", Some("app"))),
        (_, "_realm") | ("_org", _) => return Some(("tier", Some("org"))),
        _ => {}
    }
    let plain = |segment: &str| {
        let mut bytes = segment.bytes();
        let first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.next().is_some_and(first) && bytes.all(|byte| first(byte) || b"._-".contains(&byte))
    };
    let whole_realm = org == "_realm";
    let checks = [
        ("realm", plain(realm)),
        ("org", whole_realm || plain(org)),
        ("app", whole_realm || app == "_org" || plain(app)),
        ("domain", plain(domain)),
        ("name", plain(name)),
    ];
    let broken = checks.into_iter().find(|(_, holds)| !holds)?;
    Some(("segment", Some(broken.0)))
}
