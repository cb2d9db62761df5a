//! `tidings explain`: what a code means and what to do about it.
//!
//! Decides: how codes are found and shown. Leaves to others: the codes; they are the core's tables, and its reasons for the end of a link. Believes: no clock.
//! Bounded by: the tables.

use std::fmt::Write;

use tidings::LinkError;
use tidings::code::{self, Explained};
use tidings::wire::cbor::CborFault;

use crate::exit::{Exit, Failure, print};

/// What the sets are about, as WIRE.md's headings say it.
fn about(set: &str) -> &str {
    match set {
        "CloseReason" => "why a link ended",
        "DropReason" => "why a fact was dropped",
        "DiagnosticCode" => "what a node reports of itself",
        "EndReason" => "why a stream ended",
        "GapReason" => "why there may be a gap",
        "HandshakeRefusal" => "why a handshake is refused",
        "NoticeCode" => "notices in a stream",
        "ObjectFault" => "why a publication is passed over",
        "OutcomeCode" => "what became of a publication",
        "PublishRefusal" => "why a station refuses a publication",
        "ResumeCode" => "what a resume brought",
        "SealPolicy" => "what a sealed group asks of facts under its prefix",
        "SkipReason" => "why a station gave publications up",
        "SourceRefusal" => "why a source does not admit a publisher",
        "SubscribeRefusal" => "why a station refuses a subscription",
        "UnopenedReason" => "why a sealed fact was not opened",
        other => other,
    }
}

/// What ended a link, finer than the wire says it, and so without numbers: each under its text.
const LINKS: &str = "what ended a link, as this side knows it";

fn link_errors() -> impl Iterator<Item = LinkError> {
    let cbor = CborFault::ALL.iter().map(|fault| LinkError::Cbor(*fault));
    LinkError::PLAIN.iter().copied().chain(cbor)
}

/// Every text there is.
fn texts() -> impl Iterator<Item = &'static str> {
    let codes = code::all().map(|code| code.text);
    codes.chain(link_errors().map(LinkError::text))
}

/// Prints what `wanted` means, or every code when nothing is wanted.
pub(crate) fn run(wanted: Option<&str>) -> Result<Exit, Failure> {
    let Some(wanted) = wanted else {
        return print(&list());
    };
    let text = wanted.trim().to_lowercase().replace(['-', ' '], "_");
    let number = text.parse::<u16>().ok();
    let found = code::all().filter(|code| code.text == text || Some(code.number) == number);
    let mut shown = String::new();
    for code in found {
        let Explained {
            set,
            number,
            text,
            means,
            advice,
            ..
        } = code;
        let what = about(set);
        write!(
            shown,
            "{text} ({what}, {number})\n  means: {means}\n  do: {advice}\n"
        )
        .unwrap_or_default();
    }
    for error in link_errors().filter(|error| error.text() == text) {
        let [means, advice] = error.explain();
        write!(
            shown,
            "{text} ({LINKS})\n  means: {means}\n  do: {advice}\n"
        )
        .unwrap_or_default();
    }
    if shown.is_empty() {
        Err(unknown(wanted, &text))
    } else {
        print(&shown)
    }
}

fn list() -> String {
    let mut text = String::new();
    let mut set = "";
    for code in code::all() {
        if code.set != set {
            let gap = if set.is_empty() { "" } else { "\n" };
            set = code.set;
            writeln!(text, "{gap}{}", about(set)).unwrap_or_default();
        }
        writeln!(
            text,
            "  {:>3} {:<22} {}",
            code.number, code.text, code.means
        )
        .unwrap_or_default();
    }
    writeln!(text, "\n{LINKS}").unwrap_or_default();
    for error in link_errors() {
        let [means, _] = error.explain();
        writeln!(text, "      {:<22} {means}", error.text()).unwrap_or_default();
    }
    text
}

fn unknown(wanted: &str, text: &str) -> Failure {
    let mut near: Vec<(usize, &str)> = texts()
        .map(|known| (distance(text, known), known))
        .filter(|(distance, known)| {
            *distance <= 3.min(known.len() / 2) || (text.len() > 2 && known.contains(text))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    let next = if near.is_empty() {
        "see them all with tidings explain".to_owned()
    } else {
        let names: Vec<&str> = near.iter().take(3).map(|(_, known)| *known).collect();
        format!("did you mean {}?", names.join(", "))
    };
    Failure::usage(format!(
        "cannot explain {wanted:?}: no code is called that. {next}"
    ))
}

/// How many letters must be added, removed or changed; long texts count as far apart.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 40 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
