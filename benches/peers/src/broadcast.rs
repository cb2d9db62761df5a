//! Beside goal 11: what async-broadcast takes for one body to 64 receivers, next to tokio's channel.

use std::hint::black_box;

use bytes::Bytes;
use tidings_benches::goals::fanout::{COUNT, MOST, tokio_broadcast};
use tidings_benches::harness::{Group, each};
use tidings_benches::line::Line;

pub struct Broadcast {
    body: Bytes,
}

impl Broadcast {
    pub fn new() -> Self {
        Self {
            body: Bytes::from(vec![7; 256]),
        }
    }
}

/// One body to 64 receivers.
fn async_broadcast(body: &Bytes) -> f64 {
    let (sender, first) = async_broadcast::broadcast(16);
    let mut receivers: Vec<_> = (1..MOST).map(|_| first.clone()).collect();
    receivers.push(first);
    each(COUNT, || {
        for _ in 0..COUNT {
            assert!(sender.try_broadcast(black_box(body).clone()).is_ok());
            for receiver in &mut receivers {
                black_box(receiver.try_recv().expect("it was sent"));
            }
        }
    })
}

impl Group for Broadcast {
    fn series(&self) -> &'static [&'static str] {
        &["async-broadcast", "tokio broadcast"]
    }

    fn round(&mut self) -> Vec<f64> {
        vec![async_broadcast(&self.body), tokio_broadcast(&self.body)]
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        let &[theirs, tokio] = least else {
            unreachable!("one figure for each sample");
        };
        let figure = format!("{theirs:.0} and {tokio:.0} ns");
        vec![Line::shown(
            11,
            "async-broadcast and tokio broadcast to 64",
            figure,
        )]
    }
}
