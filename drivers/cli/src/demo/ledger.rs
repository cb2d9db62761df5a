//! The demonstration's ledger: what each subscriber received, day by day, held against the data set.
//!
//! Decides: which days are accounted for, and by what. Leaves to others: the machines' counters; the one that is compared (superseded)
//! has to agree with the payloads. Believes: publishers' times, for the windows of gaps. Bounded by: the days published.

use serde_json::{Value, json};
use tidings::{Mode, Notice, WallMs};

use crate::args::Sabotage;
use crate::human::count;

/// One received fact.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Which day; none when it is not exactly one of the data set.
    pub(crate) day: Option<usize>,
    pub(crate) late: bool,
    pub(crate) published_at: WallMs,
    /// Delivered since an interruption began, and published before it was over.
    pub(crate) recovered: bool,
}

/// Everything one subscriber got.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) mode: Mode,
    pub(crate) facts: Vec<Received>,
    pub(crate) notices: Vec<Notice>,
    /// What the subscription itself counted as superseded.
    pub(crate) superseded: u64,
    /// When the last interruption is or was over, if all it held up is to come.
    recovers_until: Option<WallMs>,
}

/// What became of the published days in one subscription.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) published: u64,
    pub(crate) delivered: u64,
    pub(crate) late: u64,
    pub(crate) superseded: u64,
    pub(crate) recovered: u64,
    /// Missing, and inside the window of a gap.
    pub(crate) in_gaps: u64,
    /// Missing, and accounted for by another notice.
    pub(crate) in_notices: u64,
    pub(crate) silently_lost: u64,
    pub(crate) twice: u64,
    pub(crate) out_of_order: u64,
    pub(crate) altered: u64,
    pub(crate) findings: Vec<String>,
}

/// What a mode is called on the command line.
pub(crate) fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::AsArrives => "as_arrives",
        Mode::LatestOnly => "latest_only",
        _ => "ordered",
    }
}

impl Account {
    pub(crate) fn new(mode: Mode) -> Self {
        Self {
            mode,
            facts: Vec::new(),
            notices: Vec::new(),
            superseded: 0,
            recovers_until: None,
        }
    }

    /// A fact came.
    pub(crate) fn receive(&mut self, day: Option<usize>, late: bool, published_at: WallMs) {
        let recovered = self.recovers_until.is_some_and(|at| published_at < at);
        self.facts.push(Received {
            day,
            late,
            published_at,
            recovered,
        });
    }

    /// A notice came at this date.
    pub(crate) fn notice(&mut self, notice: Notice, now: u64) {
        match notice {
            Notice::Interrupted { .. } => self.recovers_until = Some(WallMs::new(u64::MAX)),
            Notice::Resumed { .. } => self.recovers_until = Some(WallMs::new(now)),
            Notice::Gap { .. } => self.recovers_until = None,
            _ => {}
        }
        self.notices.push(notice);
    }

    /// Spoils what was received. Returns what was done, for the reader to compare with what is found.
    pub(crate) fn spoil(&mut self, how: Sabotage) -> String {
        let at = self.facts.len() / 2;
        let Some(next) = self.facts.get(at + 1).cloned() else {
            return "nothing, too little was received".to_owned();
        };
        match how {
            Sabotage::Drop => {
                self.facts.remove(at);
                format!("one received day taken away from {}", name(self.mode))
            }
            Sabotage::Dup => {
                self.facts.insert(at + 1, next);
                format!("one received day doubled in {}", name(self.mode))
            }
            Sabotage::Swap => {
                self.facts.swap(at, at + 1);
                format!("two received days exchanged in {}", name(self.mode))
            }
        }
    }

    /// Holds what was received against `published` days; `dates` names them.
    pub(crate) fn close(&self, published: usize, dates: &[&str]) -> Row {
        let mut row = Row {
            name: name(self.mode),
            published: published as u64,
            ..Row::default()
        };
        let mut seen: Vec<Option<WallMs>> = vec![None; published];
        let mut newest = None;
        for fact in &self.facts {
            let Some((day, seen)) = fact.day.and_then(|day| Some((day, seen.get_mut(day)?))) else {
                row.altered += 1;
                continue;
            };
            if seen.replace(fact.published_at).is_some() {
                row.twice += 1;
                row.findings
                    .push(format!("{}: {} came twice", row.name, dates[day]));
                continue;
            }
            row.delivered += 1;
            row.late += u64::from(fact.late);
            row.recovered += u64::from(fact.recovered);
            if newest.is_some_and(|newest| day < newest)
                && !fact.late
                && self.mode != Mode::AsArrives
            {
                row.out_of_order += 1;
                row.findings
                    .push(format!("{}: {} came out of order", row.name, dates[day]));
            }
            newest = newest.max(Some(day));
        }
        let mut uncounted = self.uncounted();
        for (day, _) in seen.iter().enumerate().filter(|(_, seen)| seen.is_none()) {
            if self.is_in_gap(day, &seen) {
                row.in_gaps += 1;
            } else if self.is_skipped(day) {
                row.in_notices += 1;
            } else if self.mode == Mode::LatestOnly && newest.is_some_and(|newest| day < newest) {
                row.superseded += 1;
            } else if uncounted > 0 {
                uncounted -= 1;
                row.in_notices += 1;
            } else {
                row.silently_lost += 1;
                row.findings.push(format!(
                    "{}: {} is missing and no notice says so",
                    row.name, dates[day]
                ));
            }
        }
        if row.altered > 0 {
            row.findings.push(format!(
                "{}: {} facts are no day of the data set",
                row.name,
                count(row.altered)
            ));
        }
        // What is missing in a gap may have been superseded as well.
        let superseded = row.superseded..=row.superseded + row.in_gaps;
        if self.mode == Mode::LatestOnly && !superseded.contains(&self.superseded) {
            row.findings.push(format!(
                "{}: {} days are missing as superseded, the subscription counted {}",
                row.name,
                count(row.superseded),
                count(self.superseded)
            ));
        }
        row
    }

    /// Facts notices speak of without saying which.
    fn uncounted(&self) -> u64 {
        let told = self.notices.iter().map(|notice| match notice {
            Notice::Conflict { count, .. } | Notice::Dropped { count, .. } => *count,
            Notice::Lagged { missed, .. } => *missed,
            _ => 0,
        });
        told.fold(0, u64::saturating_add)
    }

    /// Whether a notice names the day, which has the number after its place.
    fn is_skipped(&self, day: usize) -> bool {
        let seq = day as u64 + 1;
        self.notices.iter().any(|notice| match notice {
            Notice::Skipped { first, last, .. } => (*first..=*last).contains(&seq),
            _ => false,
        })
    }

    /// Whether the day was published in the window of a gap: between its neighbours.
    fn is_in_gap(&self, day: usize, seen: &[Option<WallMs>]) -> bool {
        let before = seen[..day].iter().rev().find_map(|at| *at);
        let after = seen[day..].iter().find_map(|at| *at);
        self.notices.iter().any(|notice| match notice {
            Notice::Gap { from, to, .. } => {
                before.is_none_or(|before| before <= *to)
                    && after.is_none_or(|after| after >= *from)
            }
            _ => false,
        })
    }
}

impl Row {
    /// Whether everything is accounted for, once and in order.
    pub(crate) fn balances(&self) -> bool {
        let told = self.in_gaps + self.in_notices;
        let accounted = self.delivered + self.superseded + told + self.silently_lost;
        self.findings.is_empty() && self.silently_lost == 0 && accounted == self.published
    }

    /// The row as `--json` prints it.
    pub(crate) fn json(&self) -> Value {
        json!({
            "mode": self.name,
            "published": self.published,
            "delivered": self.delivered,
            "late": self.late,
            "recovered": self.recovered,
            "superseded": self.superseded,
            "in_gaps": self.in_gaps,
            "in_notices": self.in_notices,
            "silently_lost": self.silently_lost,
            "twice": self.twice,
            "out_of_order": self.out_of_order,
            "altered": self.altered,
            "balances": self.balances(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATES: [&str; 6] = ["d0", "d1", "d2", "d3", "d4", "d5"];

    fn account(mode: Mode, days: &[usize]) -> Account {
        let facts = days.iter().map(|day| Received {
            day: Some(*day),
            late: false,
            published_at: WallMs::new(1000 + *day as u64 * 10),
            recovered: false,
        });
        Account {
            facts: facts.collect(),
            ..Account::new(mode)
        }
    }

    fn numbering() -> tidings::Numbering {
        tidings::Numbering {
            publisher: tidings::NodeId::new([1; 32]),
            topic: "demo/x".to_owned(),
            epoch: 1,
        }
    }

    #[test]
    fn all_days_once_balance_in_every_mode() {
        for mode in [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives] {
            assert!(
                account(mode, &[0, 1, 2, 3, 4, 5])
                    .close(6, &DATES)
                    .balances()
            );
        }
    }

    #[test]
    fn every_sabotage_is_found() {
        for how in [Sabotage::Drop, Sabotage::Dup, Sabotage::Swap] {
            let mut spoilt = account(Mode::Ordered, &[0, 1, 2, 3, 4, 5]);
            spoilt.spoil(how);
            let row = spoilt.close(6, &DATES);
            assert!(!row.balances(), "{how:?}");
            assert!(!row.findings.is_empty(), "{how:?}");
        }
    }

    #[test]
    fn a_day_missing_without_notice_is_silently_lost() {
        for mode in [Mode::Ordered, Mode::AsArrives] {
            assert_eq!(
                account(mode, &[0, 1, 3, 4, 5])
                    .close(6, &DATES)
                    .silently_lost,
                1
            );
        }
        assert_eq!(
            account(Mode::LatestOnly, &[0, 1, 2])
                .close(6, &DATES)
                .silently_lost,
            3
        );
    }

    #[test]
    fn superseded_days_are_compared_with_what_the_subscription_counted() {
        let mut latest = account(Mode::LatestOnly, &[0, 2, 5]);
        assert!(!latest.close(6, &DATES).balances());
        latest.superseded = 3;
        assert!(latest.close(6, &DATES).balances());
    }

    #[test]
    fn notices_account_for_what_they_name_and_no_more() {
        let mut account = account(Mode::Ordered, &[0, 3, 4, 5]);
        account.notices.push(Notice::Skipped {
            of: numbering(),
            first: 2,
            last: 2,
        });
        let row = account.close(6, &DATES);
        assert_eq!((row.in_notices, row.silently_lost), (1, 1));
        account.notices.push(Notice::Gap {
            from: WallMs::new(1015),
            to: WallMs::new(1025),
            reason: tidings::code::GapReason::Lost,
            count: None,
        });
        let row = account.close(6, &DATES);
        // The gap began between the neighbours of both.
        assert_eq!((row.in_gaps, row.in_notices), (2, 0));
        assert!(row.balances());
    }

    #[test]
    fn what_an_interruption_held_up_and_came_after_it_is_recovered() {
        let mut account = Account::new(Mode::Ordered);
        account.receive(Some(0), false, WallMs::new(1000));
        let interrupted = Notice::Interrupted {
            from: WallMs::new(1001),
            reason: tidings::code::CloseReason::Io,
        };
        account.notice(interrupted, 1014);
        // Of the first station that is back, before the others answered.
        account.receive(Some(1), false, WallMs::new(1005));
        account.notice(Notice::Resumed { recovered: 2 }, 1015);
        account.receive(Some(2), false, WallMs::new(1010));
        account.receive(Some(3), false, WallMs::new(1020));
        let row = account.close(4, &DATES);
        assert_eq!((row.recovered, row.delivered), (2, 4));
        assert!(row.balances());
    }

    #[test]
    fn out_of_order_counts_unless_late_or_as_it_arrives() {
        assert_eq!(
            account(Mode::Ordered, &[0, 2, 1, 3, 4, 5])
                .close(6, &DATES)
                .out_of_order,
            1
        );
        assert!(
            account(Mode::AsArrives, &[0, 2, 1, 3, 4, 5])
                .close(6, &DATES)
                .balances()
        );
        let mut late = account(Mode::Ordered, &[0, 2, 1, 3, 4, 5]);
        late.facts[2].late = true;
        assert!(late.close(6, &DATES).balances());
    }

    #[test]
    fn an_altered_day_is_found() {
        let mut altered = account(Mode::Ordered, &[0, 1, 2, 3, 4, 5]);
        altered.facts[5].day = None;
        let row = altered.close(6, &DATES);
        assert_eq!((row.altered, row.silently_lost), (1, 1));
    }
}
