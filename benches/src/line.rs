//! Lines of the table: what was measured, what was to be reached, and whether it was.
//!
//! Decides: verdicts, and how figures are written. Leaves to others: measuring. Believes: no clock. Bounded by: the goals there are.

use std::io::{self, Write};

/// How a goal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Reached.
    Pass,
    /// Not reached.
    FallsShort,
    /// Nothing was to be reached: a figure to compare others with.
    Shown,
}

impl Verdict {
    const ALL: [Self; 3] = [Self::Pass, Self::FallsShort, Self::Shown];

    fn of(reached: bool) -> Self {
        if reached {
            Self::Pass
        } else {
            Self::FallsShort
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::FallsShort => "falls short",
            Self::Shown => "-",
        }
    }
}

/// One goal, or a part of one.
#[derive(Clone, Debug)]
pub struct Line {
    /// The goal's number.
    pub goal: u8,
    /// What was measured.
    pub what: String,
    /// What it came to.
    pub figure: String,
    /// What it was to come to.
    pub wanted: String,
    /// Whether it did.
    pub verdict: Verdict,
    /// The figure as a number, where it is a count that does not depend on the machine, so that a change may be refused for it.
    pub gates: Option<f64>,
}

impl Line {
    fn new(goal: u8, what: &str, figure: String, wanted: String, reached: bool) -> Self {
        Self {
            goal,
            what: what.to_owned(),
            figure,
            wanted,
            verdict: Verdict::of(reached),
            gates: None,
        }
    }

    /// A time beside a limit that is a multiple of another time.
    pub fn ratio(goal: u8, what: &str, [time, base]: [f64; 2], wanted: f64) -> Self {
        let ratio = time / base;
        let figure = format!("{} = {ratio:.3} x {}", nanos(time), nanos(base));
        Self::new(
            goal,
            what,
            figure,
            format!("<= {wanted} x"),
            ratio <= wanted,
        )
    }

    /// A count beside a limit that is a multiple of another count.
    pub fn times(goal: u8, what: &str, [count, base]: [f64; 2], wanted: f64) -> Self {
        let ratio = count / base;
        let figure = format!("{} = {ratio:.3} x {}", number(count), number(base));
        Self::new(
            goal,
            what,
            figure,
            format!("<= {wanted} x"),
            ratio <= wanted,
        )
        .gating(ratio)
    }

    /// A time beside a limit.
    pub fn time(goal: u8, what: &str, time: f64, wanted: f64) -> Self {
        let wanted_text = format!("<= {}", nanos(wanted));
        Self::new(goal, what, nanos(time), wanted_text, time <= wanted)
    }

    /// Events in a second beside what they must at least be, in millions, from the time of one.
    pub fn rate(goal: u8, what: &str, time: f64, wanted: f64) -> Self {
        let rate = 1000.0 / time;
        let figure = format!("{rate:.1} M/s, {time:.1} ns");
        Self::new(
            goal,
            what,
            figure,
            format!(">= {wanted} M/s"),
            rate >= wanted,
        )
    }

    /// Allocations for each event.
    pub fn allocations(goal: u8, what: &str, [allocations, events]: [u64; 2], wanted: u64) -> Self {
        let figure = format!("{:.3} each", allocations as f64 / events as f64);
        let reached = allocations <= wanted * events;
        let each = allocations as f64 / events as f64;
        Self::new(goal, what, figure, format!("<= {wanted}"), reached).gating(each)
    }

    /// A count that must not be exceeded.
    pub fn count(goal: u8, what: &str, (count, unit): (f64, &str), wanted: f64) -> Self {
        let figure = format!("{} {unit}", number(count));
        Self::new(
            goal,
            what,
            figure,
            format!("<= {}", number(wanted)),
            count <= wanted,
        )
        .gating(count)
    }

    /// A count that must at least be reached, of one run.
    pub fn least(goal: u8, what: &str, (count, unit): (f64, &str), wanted: f64) -> Self {
        let figure = format!("{} {unit}", number(count));
        let wanted_text = format!(">= {}", number(wanted));
        Self::new(goal, what, figure, wanted_text, count >= wanted)
    }

    /// A figure to compare others with.
    pub fn shown(goal: u8, what: &str, figure: String) -> Self {
        let line = Self::new(goal, what, figure, String::new(), true);
        Self {
            verdict: Verdict::Shown,
            ..line
        }
    }

    fn gating(mut self, value: f64) -> Self {
        self.gates = Some(value);
        self
    }

    /// One line of text that [`parse`](Self::parse) reads: how another process hands a line over.
    pub fn encode(&self) -> String {
        let gates = self
            .gates
            .map_or_else(String::new, |value| value.to_string());
        let verdict = self.verdict.text();
        let Self {
            goal,
            what,
            figure,
            wanted,
            ..
        } = self;
        format!("{goal}\t{what}\t{figure}\t{wanted}\t{verdict}\t{gates}")
    }

    /// Reads a line of text that [`encode`](Self::encode) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split('\t').collect();
        let [goal, what, figure, wanted, verdict, gates] = fields[..] else {
            return None;
        };
        let verdict = Verdict::ALL.into_iter().find(|one| one.text() == verdict)?;
        Some(Self {
            goal: goal.parse().ok()?,
            what: what.to_owned(),
            figure: figure.to_owned(),
            wanted: wanted.to_owned(),
            verdict,
            gates: gates.parse().ok(),
        })
    }
}

/// A time in nanoseconds, in the unit it is read in.
pub fn nanos(time: f64) -> String {
    match time {
        ..10.0 => format!("{time:.1} ns"),
        ..10_000.0 => format!("{time:.0} ns"),
        _ => format!("{:.1} us", time / 1000.0),
    }
}

fn number(count: f64) -> String {
    let digits = format!("{count:.0}");
    if count.fract() > 0.05 && count < 100.0 {
        return format!("{count:.1}");
    }
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The table, by goal, and its summary. A closed pipe is the reader's choice.
pub fn print(lines: &mut [Line]) {
    lines.sort_by_key(|line| line.goal);
    let mut out = io::stdout().lock();
    let mut write = || -> io::Result<()> {
        for line in &*lines {
            let Line {
                goal,
                what,
                figure,
                wanted,
                verdict,
                ..
            } = line;
            let verdict = verdict.text();
            writeln!(out, "{goal:<4}{what:<74}{figure:<34}{wanted:<14}{verdict}")?;
        }
        let mut goals: Vec<u8> = lines.iter().map(|line| line.goal).collect();
        goals.dedup();
        let short = |line: &&Line| line.verdict == Verdict::FallsShort;
        let mut short: Vec<u8> = lines.iter().filter(short).map(|line| line.goal).collect();
        short.dedup();
        let names: Vec<String> = short.iter().map(u8::to_string).collect();
        let which = match names.is_empty() {
            true => String::new(),
            false => format!(": {}", names.join(", ")),
        };
        writeln!(out, "{} goals, {} short{which}", goals.len(), short.len())
    };
    write().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_survives_the_way_between_processes() {
        for line in [
            Line::ratio(8, "order, beside maps", [10.0, 40.0], 0.5),
            Line::count(10, "bytes", (81.0, "B"), 80.0),
            Line::shown(8, "lanes", String::from("12 ns")),
        ] {
            let parsed = Line::parse(&line.encode()).unwrap();
            assert_eq!(parsed.encode(), line.encode());
            assert_eq!(parsed.verdict, line.verdict);
        }
        assert!(Line::parse("no line").is_none());
    }

    #[test]
    fn a_figure_at_its_limit_passes_and_one_above_does_not() {
        let verdict = |count| Line::count(10, "bytes", (count, "B"), 80.0).verdict;
        assert_eq!(verdict(80.0), Verdict::Pass);
        assert_eq!(verdict(80.1), Verdict::FallsShort);
        assert_eq!(Line::rate(8, "order", 125.0, 8.0).verdict, Verdict::Pass);
        assert_eq!(
            Line::rate(8, "order", 126.0, 8.0).verdict,
            Verdict::FallsShort
        );
        let line = Line::allocations(18, "a new event", [1025, 1024], 1);
        assert_eq!(line.verdict, Verdict::FallsShort);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(1_028.0), "1,028");
        assert_eq!(number(75.25), "75.2");
        assert_eq!(number(999.0), "999");
        assert_eq!(number(1_234_567.0), "1,234,567");
    }
}
