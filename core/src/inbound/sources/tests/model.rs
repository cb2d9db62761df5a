//! What the machine does, written down as plainly as possible: a list, looked through from its front.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum V {
    Nothing,
    Admitted {
        mono: u64,
        wall: u64,
    },
    Before {
        until: u64,
    },
    Refused {
        mono: u64,
        wall: u64,
        reason: SourceRefusal,
    },
}

#[derive(Clone, Debug)]
struct One {
    key: u64,
    verdict: V,
    /// When it was answered last, counted.
    answered: u64,
    /// Turn, deadline and how many wait.
    asking: Option<(u32, u64, u32)>,
    rests: u64,
}

/// Verdicts by key; every time in milliseconds.
pub(crate) struct Model {
    limits: SourceLimits,
    verdicts: usize,
    refusals: usize,
    all: Vec<One>,
    turn: u32,
    answers: u64,
}

/// What a judgement comes to, with lookups by their turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Said {
    Admit(Option<(u32, u64)>),
    Ask(u32, u64),
    Drop(SourceDrop),
    Refuse(SourceRefusal),
    Wait(u32),
}

impl Model {
    pub(crate) fn new(limits: SourceLimits, verdicts: usize, refusals: usize) -> Self {
        Self {
            limits,
            verdicts,
            refusals,
            all: Vec::new(),
            turn: 0,
            answers: 0,
        }
    }

    fn at(&self, key: u64) -> Option<usize> {
        self.all.iter().position(|one| one.key == key)
    }

    pub(crate) fn verdict(
        &self,
        mono: u64,
        wall: u64,
        key: u64,
    ) -> Option<Result<(), SourceRefusal>> {
        match self.all[self.at(key)?].verdict {
            V::Admitted { mono: m, wall: w } if mono < m && wall < w => Some(Ok(())),
            V::Refused {
                mono: m,
                wall: w,
                reason,
            } if mono < m && wall < w => Some(Err(reason)),
            _ => None,
        }
    }

    pub(crate) fn judge(
        &mut self,
        mono: u64,
        wall: u64,
        key: u64,
        budget: impl FnOnce(bool) -> bool,
    ) -> Said {
        let live = self.verdict(mono, wall, key);
        if let Some(Err(reason)) = live {
            return Said::Refuse(reason);
        }
        if let Some(Ok(())) = live {
            let at = self.at(key).unwrap();
            let V::Admitted { mono: m, wall: w } = self.all[at].verdict else {
                unreachable!()
            };
            let margin = self.limits.refresh_margin_ms;
            let soon = m - mono <= margin || w - wall <= margin;
            let idle = self.all[at].asking.is_none() && self.all[at].rests <= mono;
            if margin > 0 && soon && idle && budget(true) {
                return Said::Admit(Some(self.begin(at, mono, 0)));
            }
            return Said::Admit(None);
        }
        if let Some(at) = self.at(key) {
            if let V::Admitted { mono: m, .. } = self.all[at].verdict {
                self.all[at].verdict = V::Before {
                    until: m + self.limits.cache_ttl_ms,
                };
            }
            if let Some((turn, _, held)) = &mut self.all[at].asking {
                if *held >= self.limits.held_per_key {
                    return Said::Drop(SourceDrop::HoldFull);
                }
                *held += 1;
                return Said::Wait(*turn);
            }
        }
        let verdict = self.at(key).map_or(V::Nothing, |at| self.all[at].verdict);
        let known = matches!(verdict, V::Before { until } if mono < until);
        let mut evicted = None;
        if !matches!(verdict, V::Before { .. }) {
            let taken = self
                .all
                .iter()
                .filter(|one| !matches!(one.verdict, V::Refused { .. }));
            if taken.count() >= self.verdicts {
                let mut oldest: Vec<&One> = self
                    .all
                    .iter()
                    .filter(|one| matches!(one.verdict, V::Admitted { .. } | V::Before { .. }))
                    .collect();
                oldest.sort_by_key(|one| one.answered);
                let over = |one: &&&One| {
                    one.asking.is_none()
                        && match one.verdict {
                            V::Admitted { mono: m, wall: w } => mono >= m || wall >= w,
                            _ => true,
                        }
                };
                match oldest.iter().take(64).find(over) {
                    Some(one) => evicted = Some(one.key),
                    None => return Said::Drop(SourceDrop::VerdictsFull),
                }
            }
        }
        if !budget(known) {
            return Said::Drop(SourceDrop::WindowSpent);
        }
        self.all.retain(|one| Some(one.key) != evicted);
        if matches!(verdict, V::Refused { .. }) {
            self.all.retain(|one| one.key != key);
        }
        if self.at(key).is_none() {
            self.all.push(One {
                key,
                verdict: V::Nothing,
                answered: 0,
                asking: None,
                rests: 0,
            });
        }
        let at = self.at(key).unwrap();
        let (turn, deadline) = self.begin(at, mono, 1);
        Said::Ask(turn, deadline)
    }

    fn begin(&mut self, at: usize, mono: u64, held: u32) -> (u32, u64) {
        self.turn += 1;
        let deadline = mono + self.limits.lookup_timeout_ms;
        self.all[at].asking = Some((self.turn, deadline, held));
        (self.turn, deadline)
    }

    pub(crate) fn answer(
        &mut self,
        mono: u64,
        wall: u64,
        turn: u32,
        answer: SourceAnswer,
    ) -> Option<Settled> {
        let asked = |one: &One| {
            let asking = one.asking;
            asking.is_some_and(|(asked, deadline, _)| asked == turn && mono < deadline)
        };
        let at = self.all.iter().position(asked)?;
        Some(self.settle(mono, wall, at, answer, SourceDrop::Undecided))
    }

    fn settle(
        &mut self,
        mono: u64,
        wall: u64,
        at: usize,
        answer: SourceAnswer,
        unknown: SourceDrop,
    ) -> Settled {
        let limits = self.limits;
        self.answers += 1;
        let answered = self.answers;
        let one = &mut self.all[at];
        one.asking = None;
        one.rests = mono + limits.lookup_timeout_ms;
        if answer == SourceAnswer::Unknown {
            if one.verdict == V::Nothing {
                self.all.remove(at);
            }
            return Settled::Drop(unknown);
        }
        let mut reason = SourceRefusal::Expired;
        if let SourceAnswer::Refuse(told) = answer {
            reason = told;
        }
        if let SourceAnswer::Admit { until } = answer
            && until.as_millis() > wall
        {
            let until = until.as_millis();
            let left = limits.cache_ttl_ms.min(until - wall);
            one.verdict = V::Admitted {
                mono: mono + left,
                wall: until.min(wall + limits.cache_ttl_ms),
            };
            one.answered = answered;
            return Settled::Admit;
        }
        let key = one.key;
        let mut fresh = one.clone();
        self.all.retain(|one| one.key != key);
        if limits.refusal_ttl_ms > 0 && self.refusals > 0 {
            let refused: Vec<(u64, u64)> = self
                .all
                .iter()
                .filter(|one| matches!(one.verdict, V::Refused { .. }))
                .map(|one| (one.answered, one.key))
                .collect();
            if refused.len() >= self.refusals {
                let (_, oldest) = *refused.iter().min().unwrap();
                self.all.retain(|one| one.key != oldest);
            }
            fresh.answered = answered;
            fresh.verdict = V::Refused {
                mono: mono + limits.refusal_ttl_ms,
                wall: wall + limits.refusal_ttl_ms,
                reason,
            };
            self.all.push(fresh);
        }
        Settled::Refuse(reason)
    }

    pub(crate) fn timeout(&mut self, mono: u64, wall: u64) -> Option<(u32, Settled)> {
        let due = |one: &One| one.asking.is_some_and(|(_, deadline, _)| deadline <= mono);
        let first = self.all.iter().enumerate().filter(|(_, one)| due(one));
        let (at, one) = first.min_by_key(|(_, one)| one.asking.unwrap().0)?;
        let turn = one.asking.unwrap().0;
        Some((
            turn,
            self.settle(
                mono,
                wall,
                at,
                SourceAnswer::Unknown,
                SourceDrop::Unanswered,
            ),
        ))
    }

    pub(crate) fn leave(&mut self, turn: u32) {
        for one in &mut self.all {
            if let Some((asked, _, held)) = &mut one.asking
                && *asked == turn
            {
                *held = held.saturating_sub(1);
            }
        }
    }

    pub(crate) fn sweep(&mut self, mono: u64, wall: u64) {
        let ttl = self.limits.cache_ttl_ms;
        loop {
            let of = |wanted: fn(&V) -> bool| {
                self.all
                    .iter()
                    .filter(|one| wanted(&one.verdict))
                    .min_by_key(|one| one.answered)
            };
            let refused = of(|v| matches!(v, V::Refused { .. }));
            let admitted = of(|v| matches!(v, V::Admitted { .. } | V::Before { .. }));
            let gone = match (refused.map(|one| (one.verdict, one.key)), admitted) {
                (
                    Some((
                        V::Refused {
                            mono: m, wall: w, ..
                        },
                        key,
                    )),
                    _,
                ) if mono >= m || wall >= w => key,
                (_, Some(one))
                    if one.asking.is_none()
                        && match one.verdict {
                            V::Admitted { mono: m, .. } => m + ttl <= mono,
                            V::Before { until } => until <= mono,
                            _ => false,
                        } =>
                {
                    one.key
                }
                _ => return,
            };
            self.all.retain(|one| one.key != gone);
        }
    }

    pub(crate) fn due(&self) -> Option<u64> {
        self.all
            .iter()
            .filter_map(|one| one.asking)
            .map(|(_, deadline, _)| deadline)
            .min()
    }

    /// Entries, lookups, facts that wait, publishers that are admitted.
    pub(crate) fn counts(&self, mono: u64, wall: u64) -> [usize; 4] {
        let asking = self.all.iter().filter_map(|one| one.asking);
        let held: u32 = asking.clone().map(|(_, _, held)| held).sum();
        let live = |one: &&One| self.verdict(mono, wall, one.key) == Some(Ok(()));
        [
            self.all.len(),
            asking.count(),
            held as usize,
            self.all.iter().filter(live).count(),
        ]
    }
}

/// A realm's lookups, written down one by one.
#[derive(Default)]
pub(crate) struct Windows {
    began: Option<u64>,
    taken: Vec<(bool, u8)>,
}

impl Windows {
    pub(crate) fn take(
        &mut self,
        mono: u64,
        limits: &SourceLimits,
        links: usize,
        known: bool,
        link: u8,
    ) -> bool {
        if self
            .began
            .is_none_or(|began| mono >= began + limits.window_ms)
        {
            self.began = Some(mono);
            self.taken.clear();
        }
        let all = limits.lookups_per_window as usize;
        let (half, quarter) = (all - all / 2, (all - all / 2).div_ceil(2));
        let strangers: Vec<u8> = self
            .taken
            .iter()
            .filter(|(known, _)| !known)
            .map(|(_, link)| *link)
            .collect();
        let mine = strangers.iter().filter(|one| **one == link).count();
        let mut distinct = strangers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let has_place = mine > 0 || distinct.len() < links;
        let may = self.taken.len() < all
            && (known || strangers.len() < half && mine < quarter && has_place);
        if may {
            self.taken.push((known, link));
        }
        may
    }
}
