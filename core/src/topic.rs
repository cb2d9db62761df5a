//! Topics, filters and the names applications build (WIRE.md section 7).
//!
//! Decides: which texts are topics, filters and names, and what a filter matches. Leaves to others: who may publish where. Believes: no
//! clock. Bounded by: 512 bytes and 16 segments; nothing here allocates.

use core::fmt;

/// The longest topic or filter in bytes.
pub const MAX_TOPIC_BYTES: usize = 512;

/// The most segments of a topic or filter.
pub const MAX_SEGMENTS: usize = 16;

/// Why a text is no topic or no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TopicFault {
    /// No bytes at all: name a topic.
    Empty,
    /// A segment of no bytes: remove the doubled, leading or trailing `/`.
    EmptySegment,
    /// Over 512 bytes: shorten it.
    TooLong,
    /// Over 16 segments: use fewer.
    TooManySegments,
    /// A `*` where it may not stand: a whole segment of a filter only, `**` as its last one only.
    Wildcard,
}

impl TopicFault {
    /// Its text, as in WIRE.md.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::EmptySegment => "empty_segment",
            Self::TooLong => "too_long",
            Self::TooManySegments => "too_many_segments",
            Self::Wildcard => "wildcard",
        }
    }
}

impl fmt::Display for TopicFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for TopicFault {}

/// Whether `topic` is a topic.
///
/// # Errors
/// The first rule it breaks, in WIRE.md's order.
pub fn check_topic(topic: &str) -> Result<(), TopicFault> {
    if is_topic(topic.as_bytes()) {
        return Ok(());
    }
    // Why not.
    check_shape(topic)?;
    if topic.contains('*') {
        return Err(TopicFault::Wildcard);
    }
    Ok(())
}

/// Whether `text` can be one segment of a topic, as the name of an organisation is.
pub fn is_topic_segment(text: &str) -> bool {
    check_topic(text).is_ok() && !text.contains('/')
}

/// Whether `filter` is a filter.
///
/// # Errors
/// The first rule it breaks, in WIRE.md's order.
pub fn check_filter(filter: &str) -> Result<(), TopicFault> {
    check_shape(filter)?;
    let mut segments = filter.split('/').peekable();
    while let Some(segment) = segments.next() {
        let allowed = match segment {
            "*" => true,
            "**" => segments.peek().is_none(),
            other => !other.contains('*'),
        };
        if !allowed {
            return Err(TopicFault::Wildcard);
        }
    }
    Ok(())
}

/// [`check_topic`], eight bytes at a time.
fn is_topic(bytes: &[u8]) -> bool {
    if !(1..=MAX_TOPIC_BYTES).contains(&bytes.len()) {
        return false;
    }
    // Of each of eight places, how many slashes stood there: as many as there are words at most.
    let (mut slashes, mut faults, mut last) = (0, 0, SLASH);
    let mut look = |word: u64| {
        let here = equal(word, b'/');
        // A slash after a slash, the place before the first byte taken for one, and any star.
        faults |= here & (here << 8 | last) | equal(word, b'*');
        slashes += here >> 7;
        last = here >> 56;
    };
    let (words, rest) = bytes.as_chunks();
    for word in words {
        look(u64::from_le_bytes(*word));
    }
    match bytes.last_chunk() {
        _ if rest.is_empty() => {}
        // Those in front of the rest were looked at.
        Some(last) => look(u64::from_le_bytes(*last) >> (64 - 8 * rest.len())),
        None => look(
            rest.iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte)),
        ),
    }
    let slashes = (slashes & EVEN) + (slashes >> 8 & EVEN);
    let slashes = slashes.wrapping_mul(0x0001_0001_0001_0001) >> 48;
    faults == 0 && slashes < MAX_SEGMENTS as u64 && !bytes.ends_with(b"/")
}

/// What [`equal`] says of a slash in the first byte.
const SLASH: u64 = 0x80;
const ONES: u64 = 0x0101_0101_0101_0101;
/// Every other byte.
const EVEN: u64 = 0x00ff_00ff_00ff_00ff;

/// The top bit of each byte that equals `wanted`.
const fn equal(word: u64, wanted: u8) -> u64 {
    const LOW: u64 = 0x7f * ONES;
    let zero_where_equal = word ^ u64::from_ne_bytes([wanted; 8]);
    !((zero_where_equal & LOW).wrapping_add(LOW) | zero_where_equal | LOW)
}

fn check_shape(text: &str) -> Result<(), TopicFault> {
    if text.is_empty() {
        return Err(TopicFault::Empty);
    }
    if text.len() > MAX_TOPIC_BYTES {
        return Err(TopicFault::TooLong);
    }
    let bytes = text.as_bytes();
    if bytes.iter().filter(|byte| **byte == b'/').count() >= MAX_SEGMENTS {
        return Err(TopicFault::TooManySegments);
    }
    let doubled = bytes.windows(2).any(|pair| pair == b"//");
    if doubled || bytes.starts_with(b"/") || bytes.ends_with(b"/") {
        return Err(TopicFault::EmptySegment);
    }
    Ok(())
}

/// Whether `filter` matches `topic`. A filter without wildcards matches the equal topic; a wildcard as first segment matches no system
/// topic. Texts that are no filter or no topic match nothing but themselves.
pub fn matches(filter: &str, topic: &str) -> bool {
    if !has_wildcard(filter) {
        return filter == topic;
    }
    if is_system(topic) && filter.starts_with('*') {
        return false;
    }
    let mut have = topic.split('/');
    for want in filter.split('/') {
        // `**` stands last and wants one segment at least.
        let Some(segment) = have.next() else {
            return false;
        };
        match want {
            "**" => return true,
            "*" => {}
            exact if exact == segment => {}
            _ => return false,
        }
    }
    have.next().is_none()
}

/// Whether the topic (or filter) belongs to stations and nodes: its first segment begins with `_`.
pub fn is_system(topic: &str) -> bool {
    topic.starts_with('_')
}

/// Whether the filter may match more than one topic.
pub fn has_wildcard(filter: &str) -> bool {
    filter.contains('*')
}

/// One of the five segments of a [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Segment {
    /// The third: the application, or `_org`, or `_realm`.
    App,
    /// The fourth.
    Domain,
    /// The fifth, with its version.
    Name,
    /// The second: the organisation, or `_realm`.
    Org,
    /// The first: the realm's name.
    Realm,
}

impl Segment {
    /// Its text, as in WIRE.md.
    pub const fn text(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Domain => "domain",
            Self::Name => "name",
            Self::Org => "org",
            Self::Realm => "realm",
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Why a text is no name, or parts make none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NameFault {
    /// A segment of characters it may not hold: begin with `a`–`z` or `0`–`9`, go on with those, `.`, `_` and `-`.
    Segment(Segment),
    /// Not exactly five segments: `{realm}/{org}/{app}/{domain}/{name}_v{N}`.
    Structure,
    /// `_realm` or `_org` where it may not stand: this segment is wrong.
    Tier(Segment),
    /// Over 512 bytes: shorten it.
    TooLong,
    /// No `_v` and number at the end, or one that is 0, has a leading zero or does not fit 32 bits.
    Version,
}

impl NameFault {
    /// Its text, as in WIRE.md.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Segment(_) => "segment",
            Self::Structure => "structure",
            Self::Tier(_) => "tier",
            Self::TooLong => "too_long",
            Self::Version => "version",
        }
    }

    /// The segment at fault, when it is one.
    pub const fn segment(self) -> Option<Segment> {
        match self {
            Self::Segment(segment) | Self::Tier(segment) => Some(segment),
            Self::Version => Some(Segment::Name),
            Self::Structure | Self::TooLong => None,
        }
    }
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.segment() {
            Some(segment) => write!(f, "{}: {segment}", self.text()),
            None => f.write_str(self.text()),
        }
    }
}

impl core::error::Error for NameFault {}

/// Who a [`Name`] belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Tier {
    /// One application of one organisation.
    App,
    /// One organisation.
    Org,
    /// The whole realm.
    Realm,
}

const REALM: &str = "_realm";
const ORG: &str = "_org";

/// A topic of five segments, built or parsed; its `Display` is the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name<'a> {
    realm: &'a str,
    org: &'a str,
    app: &'a str,
    domain: &'a str,
    name: &'a str,
    version: u32,
}

impl<'a> Name<'a> {
    /// A fact of the whole realm.
    ///
    /// # Errors
    /// The segment that breaks a rule.
    pub fn realm_fact(
        realm: &'a str,
        domain: &'a str,
        name: &'a str,
        version: u32,
    ) -> Result<Self, NameFault> {
        Self::build(Tier::Realm, realm, REALM, REALM, domain, name, version)
    }

    /// A hope of the whole realm: the same text as the fact, for the reader's sake.
    ///
    /// # Errors
    /// The segment that breaks a rule.
    pub fn realm_hope(
        realm: &'a str,
        domain: &'a str,
        name: &'a str,
        version: u32,
    ) -> Result<Self, NameFault> {
        Self::realm_fact(realm, domain, name, version)
    }

    /// A fact of one organisation.
    ///
    /// # Errors
    /// The segment that breaks a rule.
    pub fn org_fact(
        realm: &'a str,
        org: &'a str,
        domain: &'a str,
        name: &'a str,
        version: u32,
    ) -> Result<Self, NameFault> {
        Self::build(Tier::Org, realm, org, ORG, domain, name, version)
    }

    /// A hope of one organisation: the same text as the fact.
    ///
    /// # Errors
    /// The segment that breaks a rule.
    pub fn org_hope(
        realm: &'a str,
        org: &'a str,
        domain: &'a str,
        name: &'a str,
        version: u32,
    ) -> Result<Self, NameFault> {
        Self::org_fact(realm, org, domain, name, version)
    }

    /// A fact of one application.
    ///
    /// # Errors
    /// The segment that breaks a rule.
    pub fn app_fact(
        realm: &'a str,
        org: &'a str,
        app: &'a str,
        domain: &'a str,
        name: &'a str,
        version: u32,
    ) -> Result<Self, NameFault> {
        Self::build(Tier::App, realm, org, app, domain, name, version)
    }

    /// A hope of one application: the same text as the fact.
    ///
    /// # Errors
    /// The segment that breaks a rule.
    pub fn app_hope(
        realm: &'a str,
        org: &'a str,
        app: &'a str,
        domain: &'a str,
        name: &'a str,
        version: u32,
    ) -> Result<Self, NameFault> {
        Self::app_fact(realm, org, app, domain, name, version)
    }

    fn build(
        tier: Tier,
        realm: &'a str,
        org: &'a str,
        app: &'a str,
        domain: &'a str,
        name: &'a str,
        version: u32,
    ) -> Result<Self, NameFault> {
        let built = Self {
            realm,
            org,
            app,
            domain,
            name,
            version,
        };
        if built.len() > MAX_TOPIC_BYTES {
            return Err(NameFault::TooLong);
        }
        if version == 0 {
            return Err(NameFault::Version);
        }
        built.check(tier)?;
        Ok(built)
    }

    /// The exact inverse of the builders: what is parsed could have been built, and is equal to it.
    ///
    /// # Errors
    /// The first rule the text breaks, in WIRE.md's order.
    pub fn parse(topic: &'a str) -> Result<Self, NameFault> {
        let mut segments = topic.split('/');
        let (Some(realm), Some(org), Some(app), Some(domain), Some(last), None) = (
            segments.next(),
            segments.next(),
            segments.next(),
            segments.next(),
            segments.next(),
            segments.next(),
        ) else {
            return Err(NameFault::Structure);
        };
        if topic.len() > MAX_TOPIC_BYTES {
            return Err(NameFault::TooLong);
        }
        let Some((name, version)) = split_version(last) else {
            return Err(NameFault::Version);
        };
        let parsed = Self {
            realm,
            org,
            app,
            domain,
            name,
            version,
        };
        let tier = match (org, app) {
            (REALM, REALM) => Tier::Realm,
            (REALM, _) => return Err(NameFault::Tier(Segment::App)),
            (_, REALM) | (ORG, _) => return Err(NameFault::Tier(Segment::Org)),
            (_, ORG) => Tier::Org,
            _ => Tier::App,
        };
        parsed.check(tier)?;
        Ok(parsed)
    }

    /// The first segment that breaks the rule. Where the tier has a sentinel, that stands already.
    fn check(&self, tier: Tier) -> Result<(), NameFault> {
        for (segment, text, sentinel) in [
            (Segment::Realm, self.realm, false),
            (Segment::Org, self.org, tier == Tier::Realm),
            (Segment::App, self.app, tier != Tier::App),
            (Segment::Domain, self.domain, false),
            (Segment::Name, self.name, false),
        ] {
            if !sentinel && !is_segment(text) {
                return Err(NameFault::Segment(segment));
            }
        }
        Ok(())
    }

    fn len(&self) -> usize {
        let digits = self
            .version
            .checked_ilog10()
            .map_or(1, |log| log as usize + 1);
        [self.realm, self.org, self.app, self.domain, self.name]
            .iter()
            .fold(4 + 2 + digits, |sum, part| sum.saturating_add(part.len()))
    }

    /// The realm's name.
    pub const fn realm(&self) -> &'a str {
        self.realm
    }

    /// The organisation; `None` for the realm's tier.
    pub fn org(&self) -> Option<&'a str> {
        (self.org != REALM).then_some(self.org)
    }

    /// The application; `None` for the tiers of the realm and of an organisation.
    pub fn app(&self) -> Option<&'a str> {
        (self.app != REALM && self.app != ORG).then_some(self.app)
    }

    /// The domain.
    pub const fn domain(&self) -> &'a str {
        self.domain
    }

    /// The name, without its version.
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// The version, 1 at least.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Whose name it is.
    pub fn tier(&self) -> Tier {
        match (self.org(), self.app()) {
            (_, Some(_)) => Tier::App,
            (Some(_), None) => Tier::Org,
            (None, None) => Tier::Realm,
        }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            realm,
            org,
            app,
            domain,
            name,
            version,
        } = self;
        write!(f, "{realm}/{org}/{app}/{domain}/{name}_v{version}")
    }
}

fn is_segment(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match text.as_bytes() {
        [first, rest @ ..] => {
            plain(*first)
                && rest
                    .iter()
                    .all(|byte| plain(*byte) || matches!(byte, b'.' | b'_' | b'-'))
        }
        [] => false,
    }
}

/// The name before the last `_v` that digits follow to the end, and those digits.
fn split_version(segment: &str) -> Option<(&str, u32)> {
    let (name, digits) = segment.rsplit_once("_v")?;
    let canonical = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let version = digits
        .parse()
        .ok()
        .filter(|version| *version > 0 && canonical)?;
    Some((name, version))
}

#[cfg(test)]
mod tests;
