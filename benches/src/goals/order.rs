//! Goal 8: facts put back in their publishers' order, each publisher looked up by its id, deadlines included.

use std::time::Duration;

use tidings::{Instant, NodeId};

use super::machines::{Ordering, Places, PlainLane, PlainOrder, Taken};
use crate::harness::{Group, each};
use crate::line::{Line, nanos};
use crate::maps::Maps;
use crate::random::Random;

/// Facts come in any order within so many numbers of one publisher.
const WINDOW: usize = 64;
/// One way of arriving, and those who put it in order.
struct Case {
    publishers: Vec<NodeId>,
    random: Random,
    /// Facts come in any order within a window, else in order.
    shuffled: bool,
    /// Numbers each publisher has used up.
    used: u64,
    now: Instant,
    ways: Vec<Way>,
    /// What every way must have handed out.
    all: Taken,
}

struct Way {
    ordering: Box<dyn Ordering>,
    taken: Taken,
}

impl Case {
    fn new(publishers: usize, shuffled: bool, orderings: Vec<Box<dyn Ordering>>) -> Self {
        let mut random = Random::new(publishers as u64);
        let publishers: Vec<NodeId> = (0..publishers)
            .map(|_| NodeId::new(random.bytes()))
            .collect();
        let ways = orderings.into_iter().map(|mut ordering| {
            for publisher in &publishers {
                ordering.meet(publisher);
            }
            let taken = Taken::default();
            Way { ordering, taken }
        });
        let ways = ways.collect();
        Self {
            publishers,
            random,
            shuffled,
            used: 0,
            now: Instant::ORIGIN,
            ways,
            all: Taken::default(),
        }
    }

    /// Facts of every publisher in turn, so many of each.
    fn facts(&mut self, of_each: usize) -> Vec<(NodeId, u64, u64)> {
        let mut turn: Vec<usize> = (0..self.publishers.len()).collect();
        self.random.shuffle(&mut turn);
        let mut facts = Vec::with_capacity(of_each * turn.len());
        for window in 0..of_each.div_ceil(WINDOW) {
            let base = self.used + (window * WINDOW) as u64;
            let width = WINDOW.min(of_each - window * WINDOW);
            let mut orders: Vec<Vec<u64>> = Vec::new();
            if self.shuffled {
                orders = turn.iter().map(|_| self.window(width)).collect();
            }
            for at in 0..width {
                for (nth, publisher) in turn.iter().enumerate() {
                    let offset = orders.get(nth).map_or(at as u64, |order| order[at]);
                    let item = self.random.next_u64();
                    self.all.fact(item);
                    facts.push((self.publishers[*publisher], base + offset + 1, item));
                }
            }
        }
        self.used += of_each as u64;
        facts
    }

    fn window(&mut self, width: usize) -> Vec<u64> {
        let mut order: Vec<u64> = (0..width as u64).collect();
        self.random.shuffle(&mut order);
        order
    }

    fn round(&mut self, facts: usize) -> Vec<f64> {
        let facts = self.facts((facts / self.publishers.len()).max(1));
        let start = self.now;
        self.now = start.saturating_add(Duration::from_micros(facts.len() as u64));
        let ways = self.ways.iter_mut();
        ways.map(|way| {
            each(facts.len(), || {
                let mut now = start;
                for (publisher, seq, item) in &facts {
                    now = now.saturating_add(Duration::from_micros(1));
                    way.ordering
                        .offer(now, publisher, *seq, *item, &mut way.taken);
                }
            })
        })
        .collect()
    }

    fn check(&self) {
        for way in &self.ways {
            assert_eq!(way.taken, self.all);
        }
    }
}

/// Facts in one sample.
const FACTS: usize = 65_536;

/// See the module's text.
pub(crate) struct InOrder {
    cases: Vec<Case>,
}

impl InOrder {
    /// Publishers met, nothing heard.
    pub(crate) fn new() -> Self {
        let order = || -> Box<dyn Ordering> { Box::new(Places::<PlainOrder>::new()) };
        let lanes = || -> Box<dyn Ordering> { Box::new(Places::<PlainLane>::new()) };
        let maps = || -> Box<dyn Ordering> { Box::new(Maps::default()) };
        let case = |publishers, shuffled| {
            let ways = vec![order(), maps(), lanes()];
            Case::new(publishers, shuffled, ways)
        };
        let cases = vec![
            case(1, false),
            case(1_000, false),
            case(100_000, false),
            case(1, true),
            case(1_000, true),
        ];
        Self { cases }
    }
}

impl Default for InOrder {
    fn default() -> Self {
        Self::new()
    }
}

/// The cases, with what is wanted in millions per second.
const CASES: [(&str, Option<f64>); 5] = [
    ("in order, 1 publisher", Some(30.0)),
    ("in order, 1,000 publishers", Some(30.0)),
    ("in order, 100,000 publishers", Some(8.0)),
    ("random within 64, 1 publisher", Some(15.0)),
    ("random within 64, 1,000 publishers", None),
];

impl Group for InOrder {
    fn series(&self) -> &'static [&'static str] {
        &[
            "order 1",
            "maps 1",
            "lanes 1",
            "order 1000",
            "maps 1000",
            "lanes 1000",
            "order 100000",
            "maps 100000",
            "lanes 100000",
            "order window 1",
            "maps window 1",
            "lanes window 1",
            "order window 1000",
            "maps window 1000",
            "lanes window 1000",
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        let cases = self.cases.iter_mut();
        cases.flat_map(|case| case.round(FACTS)).collect()
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        self.cases.iter().for_each(Case::check);
        let mut lines = Vec::new();
        for ((name, wanted), figures) in CASES.iter().zip(least.chunks(3)) {
            let &[order, maps, lanes] = figures else {
                unreachable!("three ways each");
            };
            match wanted {
                Some(wanted) => {
                    lines.push(Line::rate(8, &format!("order, {name}"), order, *wanted))
                }
                None => lines.push(Line::shown(8, &format!("order, {name}"), nanos(order))),
            }
            let beside = format!("... beside hash map and B-tree, {name}");
            lines.push(Line::ratio(8, &beside, [order, maps], 0.5));
            let whole = format!("... whole lanes, {name}");
            lines.push(Line::shown(8, &whole, nanos(lanes)));
        }
        lines
    }
}
