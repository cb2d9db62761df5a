use proptest::prelude::*;

use super::model::Model;
use super::*;

#[derive(Clone, Debug)]
enum Op {
    Offer { wait: u64, seq: u64, copy: bool },
    Close { wait: u64, seq: u64 },
    GiveUp { wait: u64, seq: u64 },
    Back { by: u64 },
    Tick { wait: u64 },
    Due,
    Drain { most: usize },
    Begin { at_one: bool, outdated: bool },
}

fn seqs() -> impl Strategy<Value = u64> {
    prop_oneof![
        12 => 0..14_u64,
        4 => 10..40_u64,
        2 => 40..140_u64,
        1 => (u64::MAX - 3)..=u64::MAX,
        1 => any::<u64>(),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let wait = || 0..12_u64;
    prop_oneof![
        10 => (wait(), seqs(), any::<bool>()).prop_map(|(wait, seq, copy)| Op::Offer { wait, seq, copy }),
        2 => (wait(), seqs()).prop_map(|(wait, seq)| Op::Close { wait, seq }),
        1 => (wait(), seqs()).prop_map(|(wait, seq)| Op::GiveUp { wait, seq }),
        1 => (0..30_u64).prop_map(|by| Op::Back { by }),
        2 => wait().prop_map(|wait| Op::Tick { wait }),
        2 => Just(Op::Due),
        4 => (0..6_usize).prop_map(|most| Op::Drain { most }),
        1 => any::<(bool, bool)>().prop_map(|(at_one, outdated)| Op::Begin { at_one, outdated }),
    ]
}

/// What was said of numbers so far: no `Skipped` may say it again.
#[derive(Default)]
struct Told(Vec<(u64, u64, u64)>);

impl Told {
    fn release(&mut self, released: &Release<u32>) {
        match *released {
            Release::Fact { epoch, seq, .. } => self.0.push((epoch, seq, seq)),
            Release::Skipped { epoch, first, last } => {
                let again = self
                    .0
                    .iter()
                    .find(|told| told.0 == epoch && told.1 <= last && first <= told.2);
                assert_eq!(again, None, "{first}..={last} is skipped");
                self.0.push((epoch, first, last));
            }
        }
    }
}

/// Runs a script on the machine and on the model, compares everything that can be seen, and counts what occurred.
fn compare<S>(mut order: Order<u32, S>, config: OrderConfig, room: usize, script: &[Op]) -> [u64; 6]
where
    S: AsRef<[Option<Slot<u32>>]> + AsMut<[Option<Slot<u32>>]>,
{
    let mut model = Model::new(config, room);
    let mut now = 1000;
    let mut seen = [0; 6];
    let mut told = Told::default();
    for (step, op) in script.iter().enumerate() {
        let item = step as u32;
        match *op {
            Op::Offer { wait, seq, copy } => {
                now += wait;
                let admit = order.offer(ms(now), seq, copy, item);
                assert_eq!(
                    admit,
                    model.offer(ms(now), seq, copy, item),
                    "{step} {op:?}"
                );
                seen[0] += u64::from(matches!(admit, Admit::Conflict(_)));
                seen[1] += u64::from(matches!(admit, Admit::Busy(_)));
                seen[2] += u64::from(matches!(admit, Admit::Duplicate(_)));
            }
            Op::Close { wait, seq } => {
                now += wait;
                order.handle_timeout(ms(now));
                let decided = order.is_covered(seq);
                let closed = order.close(ms(now), seq);
                assert_eq!(closed, model.close(ms(now), seq), "{step} {op:?}");
                seen[5] += u64::from(!closed);
                if closed && !decided {
                    told.0.push((order.epoch, seq, seq));
                }
            }
            Op::GiveUp { wait, seq } => {
                now += wait;
                assert_eq!(order.give_up(ms(now), seq), model.give_up(ms(now), seq));
            }
            Op::Back { by } => {
                order.handle_timeout(ms(now - by));
                model.tick(ms(now - by));
            }
            Op::Tick { wait } => {
                now += wait;
                order.handle_timeout(ms(now));
                model.tick(ms(now));
                assert!(order.poll_timeout().is_none_or(|due| due > ms(now)));
            }
            Op::Due => {
                if let Some(due) = order.poll_timeout() {
                    let before = Instant::from_micros(due.as_micros() - 1);
                    let (held, edge) = (order.held(), order.edge());
                    order.handle_timeout(before);
                    assert_eq!(
                        (order.held(), order.edge()),
                        (held, edge),
                        "early is a no-op"
                    );
                    now = due.as_micros() / 1000;
                    order.handle_timeout(due);
                    model.tick(due);
                    assert!(order.held() < held, "due makes progress");
                }
            }
            Op::Drain { most } => {
                for _ in 0..most {
                    let released = order.poll();
                    assert_eq!(released, model.poll(), "{step}");
                    released.iter().for_each(|released| told.release(released));
                    match released {
                        Some(Release::Fact { late: true, .. }) => seen[3] += 1,
                        Some(Release::Skipped { .. }) => seen[4] += 1,
                        _ => (),
                    }
                }
            }
            Op::Begin { at_one, outdated } => {
                assert_eq!(
                    order.begin(item.into(), at_one),
                    model.begin(item.into(), at_one)
                );
                order.set_outdated(outdated);
                model.outdated = outdated;
            }
        }
        assert_eq!(order.poll_timeout(), model.due(), "{step} {op:?}");
        assert_eq!(order.edge(), model.edge);
        assert_eq!(order.held(), model.held.len());
        assert_eq!(order.missing(), &model.ranges()[..], "{step} {op:?}");
        assert_eq!((order.late(), order.skips()), (model.late, model.skips));
    }
    loop {
        let released = order.poll();
        assert_eq!(released, model.poll());
        let Some(released) = released else {
            break seen;
        };
        told.release(&released);
    }
}

fn run(script: &[Op], capacity: usize, as_arrives: bool, sparse: bool) -> [u64; 6] {
    let config = OrderConfig {
        timeout: Duration::from_millis(20),
        max_held: capacity,
        as_arrives,
        sparse,
    };
    let room = capacity + 1;
    match capacity {
        1 => compare(
            Order::new([const { [const { None }; 1] }; 2], config),
            config,
            room,
            script,
        ),
        2 => compare(
            Order::new([const { [const { None }; 2] }; 2], config),
            config,
            room,
            script,
        ),
        3 => compare(
            Order::new([const { [const { None }; 3] }; 2], config),
            config,
            room,
            script,
        ),
        5 => compare(
            Order::new([const { [const { None }; 5] }; 2], config),
            config,
            room,
            script,
        ),
        8 => compare(
            Order::new(
                [(); 2].map(|()| heapless::Vec::<_, 8>::from([const { None }; 8])),
                config,
            ),
            config,
            room,
            script,
        ),
        more => compare(Order::growing(config), config, more + 1, script),
    }
}

#[test]
fn the_machine_does_what_the_model_does_in_all_modes_and_sizes() {
    use proptest::test_runner::{Config, TestRunner};
    let failure_persistence = None;
    let mut runner = TestRunner::new(Config {
        cases: 8000,
        failure_persistence,
        ..Config::default()
    });
    let totals = core::cell::RefCell::new([0_u64; 6]);
    let size = proptest::sample::select(&[1_usize, 2, 3, 5, 8, 13, 40, 100][..]);
    let script = proptest::collection::vec(ops(), 1..80);
    runner
        .run(
            &(script, size, any::<bool>(), any::<bool>()),
            |(script, size, arrives, sparse)| {
                let seen = run(&script, size, arrives, sparse);
                totals
                    .borrow_mut()
                    .iter_mut()
                    .zip(seen)
                    .for_each(|(total, seen)| *total += seen);
                Ok(())
            },
        )
        .unwrap();
    let [conflicts, busy, duplicates, late, skipped, refused] = totals.into_inner();
    assert!(conflicts > 100 && busy > 100 && duplicates > 100 && late > 100 && skipped > 100);
    assert!(refused > 100);
}
