//! What the demonstration shows: one screen, redrawn in place on a terminal, written once through elsewhere.
//!
//! Decides: every line of it; what is redrawn fits 40 columns, the rest 80. Leaves to others: the numbers. Believes: no clock. Bounded by: one screen.

use std::io::{self, Write};
use std::time::Duration;

use super::ledger::Row;
use crate::human::{self, count};

/// How far everybody is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) total: usize,
    pub(crate) published: usize,
    /// Facts delivered, by subscriber.
    pub(crate) delivered: Vec<(&'static str, usize)>,
    pub(crate) notices: usize,
    /// Second copies thrown away by the subscribers.
    pub(crate) duplicates: u64,
    pub(crate) newest: String,
}

/// Where the demonstration is shown; nowhere with `--json`.
#[derive(Debug)]
pub(crate) struct Screen {
    out: Option<io::Stdout>,
    in_place: bool,
    /// Lines of the block that is redrawn.
    drawn: usize,
}

const BAR: usize = 15;
/// Lines that are redrawn are no wider: a narrower terminal would wrap them, and the cursor would miss.
const NARROW: usize = 39;

impl Screen {
    pub(crate) fn new(quiet: bool) -> Self {
        let out = (!quiet).then(io::stdout);
        let in_place = human::stdout_is_screen();
        Self {
            out,
            in_place,
            drawn: 0,
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        match &self.out {
            Some(out) => {
                let mut out = out.lock();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            None => Ok(()),
        }
    }

    /// The head: what runs where and how to join in.
    pub(crate) fn open(
        &self,
        days: usize,
        stations: &[String; 3],
        slow_ms: u128,
        attach: &str,
    ) -> io::Result<()> {
        let [a, b, c] = stations;
        self.write(&format!(
            "tidings demo: {} days of Seattle weather, over real sockets on this machine\n\
             \x20 station A  {a}\n\
             \x20 station B  {b}  slowed by {slow_ms} ms, so that copies race\n\
             \x20 station C  {c}  as_arrives has no other one\n\
             attach while it runs, in another terminal:\n{attach}\n",
            count(days as u64)
        ))
    }

    /// How far it is, where lines can be redrawn.
    pub(crate) fn show(&mut self, progress: &Progress) -> io::Result<()> {
        if !self.in_place {
            return Ok(());
        }
        let text = self.erase() + &self.block(progress);
        self.write(&text)
    }

    /// Something happened. [`Self::show`] follows.
    pub(crate) fn tell(&mut self, after: Duration, what: &str) -> io::Result<()> {
        let text = self.erase();
        self.write(&format!("{text}{:>5.1} s  {what}\n", after.as_secs_f64()))
    }

    /// Takes the redrawn block away.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            drawn => format!("\x1b[{drawn}A\r\x1b[J"),
        }
    }

    fn block(&mut self, progress: &Progress) -> String {
        let total = progress.total;
        let mut lines = vec![bar("published", progress.published, total)];
        for (name, delivered) in &progress.delivered {
            lines.push(bar(name, *delivered, total));
        }
        lines.push(format!(
            "  second copies {}, notices {}",
            count(progress.duplicates),
            count(progress.notices as u64)
        ));
        lines.push(format!("  {}", progress.newest));
        self.drawn = lines.len();
        let mut text = String::new();
        for line in lines {
            text.extend(line.chars().take(NARROW));
            text.push('\n');
        }
        text
    }

    /// The ledger and what to try next.
    pub(crate) fn close(
        &mut self,
        rows: &[Row],
        sealed: &str,
        answers: &str,
        findings: &[String],
        next: &str,
    ) -> io::Result<()> {
        let mut text = self.erase();
        text += &format!(
            "\n  {:<11}  delivered  recovered  superseded  in gaps  noticed  silently lost\n",
            "ledger"
        );
        for row in rows {
            text += &format!(
                "  {:<11}  {:>9}  {:>9}  {:>10}  {:>7}  {:>7}  {:>13}\n",
                row.name,
                count(row.delivered),
                count(row.recovered),
                count(row.superseded),
                count(row.in_gaps),
                count(row.in_notices),
                count(row.silently_lost),
            );
        }
        text += &format!("  {answers}\n{sealed}");
        // The rest of the screen is short: the first findings tell enough.
        let lost: u64 = rows.iter().map(|row| row.silently_lost).sum();
        for finding in findings.iter().take(2) {
            text += &format!("  found: {finding}\n");
        }
        if findings.len() > 2 {
            text += &format!("  found: {} more\n", count(findings.len() as u64 - 2));
        }
        let balance = if findings.is_empty() {
            "balances"
        } else {
            "does not balance"
        };
        text += &format!(
            "silently lost: {}; every received day was compared; the ledger {balance}\n",
            count(lost)
        );
        text += next;
        self.write(&text)
    }
}

fn bar(name: &str, done: usize, total: usize) -> String {
    let full = (BAR * done.min(total))
        .checked_div(total)
        .unwrap_or_default();
    format!(
        "  {name:<11} {}{} {:>5}",
        "█".repeat(full),
        "░".repeat(BAR - full),
        count(done as u64)
    )
}
