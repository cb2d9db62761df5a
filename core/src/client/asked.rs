//! Signatures that are checked elsewhere.
//!
//! Decides: whether one more may be asked about, and what an answer does. Leaves to others: which copy waits for which answer (questions), and
//! what is done with a fact that verified (receive). Believes: mono, for how long an answer is waited for. Bounded by:
//! `ClientLimits::pending_verifications` and a quarter of `held_bytes`; what has no room is a `Dropped` notice.

use alloc::vec::Vec;

use super::questions::TWINS;
use super::receive::Arrived;
use super::timers::Timer;
use super::{Client, TopicId};
use crate::action::{Action, Answer, Question, VerifyJob};
use crate::code::{DropReason, ObjectFault};
use crate::delivery::Delivery;
use crate::id::Asked;
use crate::refusal::Misuse;
use crate::time::Now;
use crate::wire::Publication;
use crate::{AskId, SubscriptionId};

impl Client {
    /// Whether there is room for one more question, beside those about its `twins`; its readers are told when not.
    pub(super) fn may_ask(
        &mut self,
        now: Now,
        publication: &Publication<'_>,
        twins: usize,
        readers: &[SubscriptionId],
    ) -> bool {
        let limits = &self.config.limits;
        let bytes = publication.bytes.len();
        // What anybody can send takes a quarter at most; for that much a slow reader makes room.
        let full = twins >= TWINS
            || self.unverified.len() >= limits.pending_verifications
            || self.unverified.bytes().saturating_add(bytes) > limits.held_bytes / 4;
        if !full && self.make_bytes(bytes) {
            return true;
        }
        // Not verified, so nobody's place is closed by it.
        for subscription in readers {
            self.dropped(
                now,
                *subscription,
                DropReason::VerifyFull,
                &publication.publisher,
            );
        }
        false
    }

    /// Hands a signature to be checked elsewhere.
    #[inline]
    pub(super) fn ask_verification(&mut self, now: Now, arrived: Arrived, key_known: bool) {
        let object = arrived.delivery.shared();
        self.held_bytes += object.len();
        let (ask, deadline) = self.unverified.ask(now.mono, arrived, key_known);
        self.arm_questions();
        self.actions.push_back(Action::Ask {
            ask,
            question: Question::Verify(VerifyJob::new(object, self.profile())),
            deadline,
        });
    }

    fn arm_questions(&mut self) {
        if let Some(at) = self.unverified.arm() {
            self.timers.insert((at, Timer::Ask));
        }
    }

    /// Answers a question, in any order.
    ///
    /// # Errors
    /// When it was answered or given up before; when the answer is none to such a question, which then still waits.
    pub fn answer(&mut self, now: Now, ask: AskId, answer: Answer) -> Result<(), Misuse> {
        let now = self.at(now);
        match (ask.parts_of(), answer) {
            ((Asked::Signature, ..), Answer::Verified(verified)) => {
                self.answer_verification(now, ask, verified)
            }
            ((Asked::Keys, index, generation), Answer::KeyPeriods(answer)) => {
                self.answer_keys(now, (index, generation), answer)
            }
            ((Asked::Source, slot, turn), Answer::Source(answer)) => {
                self.answer_source(now, (slot, turn), answer)
            }
            _ => Err(Misuse::WrongAnswer),
        }
    }

    fn answer_verification(&mut self, now: Now, ask: AskId, verified: bool) -> Result<(), Misuse> {
        let mut waiting = self.unverified.answered(ask);
        let Some(waiting) = &mut waiting else {
            return Err(Misuse::DeadHandle);
        };
        let arrived = &mut waiting.arrived;
        self.held_bytes -= arrived.delivery.bytes().len();
        let verified = if !verified {
            Err(ObjectFault::SignatureInvalid)
        } else if waiting.key_known {
            Ok(())
        } else {
            let delivery = &arrived.delivery;
            self.publishers
                .keep_verified(delivery.bytes(), &delivery.publisher())
        };
        // Another copy may have been taken meanwhile, and subscriptions may have ended.
        let fault = match verified {
            Ok(()) if waiting.has_twin && self.dedup.check(&arrived.hash).is_some() => {
                Some(ObjectFault::Duplicate)
            }
            verified => verified.err(),
        };
        if let Some(fault) = fault {
            self.faults.add(fault);
            return Ok(());
        }
        let mut readers = core::mem::take(&mut self.readers);
        arrived.topic = self.readers_of(arrived.topic, &arrived.delivery, &mut readers);
        if !readers.is_empty() {
            self.take(now, arrived, &readers);
        }
        self.readers = readers;
        Ok(())
    }

    /// Whom it is for now; `topic` was its topic's place, if it had one.
    fn readers_of(
        &self,
        topic: Option<TopicId>,
        delivery: &Delivery,
        readers: &mut Vec<SubscriptionId>,
    ) -> Option<TopicId> {
        let topic = match topic.filter(|topic| self.readers_on(*topic, readers)) {
            Some(topic) => Some(topic),
            None => self.matching(&delivery.realm(), delivery.topic(), readers),
        };
        let publisher = delivery.publisher();
        if !self.all_admit(&publisher, readers) {
            readers.retain(|id| self.all_admit(&publisher, &[*id]));
        }
        topic
    }

    /// A question was not answered in time: its fact is dropped, and its readers are told.
    pub(super) fn ask_timeout(&mut self, now: Now) {
        if let Some(arrived) = self.unverified.timed_out(now.mono) {
            let Arrived {
                delivery, topic, ..
            } = arrived;
            self.held_bytes -= delivery.bytes().len();
            let mut readers = core::mem::take(&mut self.readers);
            self.readers_of(topic, &delivery, &mut readers);
            let publisher = delivery.publisher();
            for subscription in &readers {
                self.dropped(now, *subscription, DropReason::Unanswered, &publisher);
            }
            self.readers = readers;
        }
        self.arm_questions();
    }
}
