//! What the demonstration shows: one screen, redrawn in place on a terminal, written once through elsewhere.
//!
//! Decides: every line of it, at most 24 of 80 columns. Leaves to others: the numbers. Believes: no clock. Bounded by: one screen.

use std::io::{self, Write};

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
    /// The shares of the whole still to be printed where nothing is redrawn.
    rows_left: usize,
}

const BAR: usize = 30;
const ROWS: usize = 6;

impl Screen {
    pub(crate) fn new(quiet: bool) -> Self {
        let out = (!quiet).then(io::stdout);
        let in_place = human::stdout_is_screen();
        Self {
            out,
            in_place,
            drawn: 0,
            rows_left: ROWS,
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
        stations: &[String; 2],
        slow_ms: u128,
        attach: &str,
    ) -> io::Result<()> {
        let [a, b] = stations;
        let mut text = format!(
            "tidings demo: {} days of Seattle weather, over real sockets on this machine\n\
             \x20 station A  {a}\n\
             \x20 station B  {b}  slowed by {slow_ms} ms, so that copies race\n\
             attach while it runs, in another terminal:\n{attach}\n\n",
            count(days as u64)
        );
        if !self.in_place {
            text +=
                "  published  ordered  latest_only  as_arrives  2nd copies  notices  newest day\n";
        }
        self.write(&text)
    }

    /// How far it is; elsewhere than on a terminal a row for each sixth of the way.
    pub(crate) fn show(&mut self, progress: &Progress) -> io::Result<()> {
        if self.in_place {
            let text = self.block(progress);
            return self.write(&text);
        }
        let due = progress.total * (ROWS + 1 - self.rows_left) / ROWS;
        if self.rows_left == 0 || progress.published < due {
            return Ok(());
        }
        self.rows_left -= 1;
        let delivered = |n: usize| {
            progress
                .delivered
                .get(n)
                .map_or(0, |(_, delivered)| *delivered as u64)
        };
        self.write(&format!(
            "  {:>9}  {:>7}  {:>11}  {:>10}  {:>10}  {:>7}  {}\n",
            count(progress.published as u64),
            count(delivered(0)),
            count(delivered(1)),
            count(delivered(2)),
            count(progress.duplicates),
            count(progress.notices as u64),
            progress.newest.split(',').next().unwrap_or_default(),
        ))
    }

    fn block(&mut self, progress: &Progress) -> String {
        let mut lines = vec![bar(
            "published",
            progress.published,
            progress.total,
            &progress.newest,
        )];
        for (name, delivered) in &progress.delivered {
            lines.push(bar(name, *delivered, progress.total, ""));
        }
        lines.push(format!(
            "  second copies dropped {}, notices {}",
            count(progress.duplicates),
            count(progress.notices as u64)
        ));
        let mut text = String::new();
        if self.drawn > 0 {
            text += &format!("\x1b[{}A", self.drawn);
        }
        self.drawn = lines.len();
        for line in lines {
            text += &format!("\r{line}\x1b[K\n");
        }
        text
    }

    /// The ledger and what to try next.
    pub(crate) fn close(
        &self,
        rows: &[Row],
        answers: &str,
        findings: &[String],
        next: &str,
    ) -> io::Result<()> {
        let mut text = format!(
            "\n  {:<11}  published  delivered  superseded  in notices  silently lost\n",
            "ledger"
        );
        for row in rows {
            text += &format!(
                "  {:<11}  {:>9}  {:>9}  {:>10}  {:>10}  {:>13}\n",
                row.name,
                count(row.published),
                count(row.delivered),
                count(row.superseded),
                count(row.in_notices),
                count(row.silently_lost),
            );
        }
        text += &format!("  {answers}\n");
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

fn bar(name: &str, done: usize, total: usize, note: &str) -> String {
    let full = (BAR * done.min(total))
        .checked_div(total)
        .unwrap_or_default();
    let line = format!(
        "  {name:<11} {}{} {:>5}  {note}",
        "█".repeat(full),
        "░".repeat(BAR - full),
        count(done as u64)
    );
    line.chars().take(80).collect()
}
