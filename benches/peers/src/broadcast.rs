//! Beside goal 11: what async-broadcast takes for one body to 64 receivers, next to tokio's channel.

use std::hint::black_box;

use bytes::Bytes;
use tidings_benches::goals::fanout::{COUNT, MOST, TOGETHER, bodies, tokio_broadcast};
use tidings_benches::harness::{Group, each};
use tidings_benches::line::Line;

pub struct Broadcast {
    /// What comes together: one at a time, and under load.
    bodies: [Vec<Bytes>; 2],
}

impl Broadcast {
    pub fn new() -> Self {
        Self {
            bodies: TOGETHER.map(bodies),
        }
    }
}

/// One body to 64 receivers, where so many come together.
fn async_broadcast(bodies: &[Bytes]) -> f64 {
    let (sender, first) = async_broadcast::broadcast(bodies.len());
    let mut receivers: Vec<_> = (1..MOST).map(|_| first.clone()).collect();
    receivers.push(first);
    each(COUNT, || {
        for _ in 0..COUNT / bodies.len() {
            for body in black_box(bodies) {
                assert!(sender.try_broadcast(body.clone()).is_ok());
            }
            for receiver in &mut receivers {
                for _ in bodies {
                    black_box(receiver.try_recv().expect("it was sent"));
                }
            }
        }
    })
}

impl Group for Broadcast {
    fn series(&self) -> &'static [&'static str] {
        &[
            "async-broadcast",
            "tokio broadcast",
            "async-broadcast under load",
            "tokio broadcast under load",
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        let both = |bodies: &Vec<Bytes>| [async_broadcast(bodies), tokio_broadcast(bodies)];
        self.bodies.iter().flat_map(both).collect()
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        let shapes = least.chunks(2).zip(["one at a time", "under load"]);
        let line = |(times, shape): (&[f64], &str)| {
            let &[theirs, tokio] = times else {
                unreachable!("one figure for each sample");
            };
            Line::shown(
                11,
                &format!("async-broadcast and tokio broadcast to 64, {shape}"),
                format!("{theirs:.0} and {tokio:.0} ns"),
            )
        };
        shapes.map(line).collect()
    }
}
