//! How many lookups one realm may cost in a stretch of time.
//!
//! Decides: whether one more may start. Leaves to others: which publisher was admitted before, and what becomes of a fact that may not be looked
//! up. Believes: mono. Bounded by: one place for each link whose strangers took from this window; a link without one gets nothing.
//!
//! Windows do not slide: one begins with the first lookup after the one before is over.

use super::SourceLimits;
use crate::time::Instant;

/// What the strangers of one link took.
pub type Share<L> = Option<(L, u32)>;

/// The lookups of one realm. See the module's text.
///
/// ```
/// use tidings::Instant;
/// use tidings::inbound::sources::{SourceLimits, Window};
///
/// let limits = SourceLimits::default();
/// let mut window = Window::new([None; 4]);
/// let at = Instant::from_millis(5);
/// // Strangers that one link brought: half of a half of 64.
/// let strangers = (0..64).filter(|_| window.take(at, &limits, false, "one link"));
/// assert_eq!(strangers.count(), 16);
/// // Whoever was admitted before has at least the other half.
/// assert!((0..32).all(|_| window.take(at, &limits, true, "one link")));
/// ```
#[derive(Clone, Debug)]
pub struct Window<L, W> {
    began: Option<Instant>,
    taken: u32,
    strangers: u32,
    shares: W,
    link: core::marker::PhantomData<fn() -> L>,
}

impl<L: Copy + Eq, W: AsRef<[Share<L>]> + AsMut<[Share<L>]>> Window<L, W> {
    /// One place for each link that may bring strangers.
    pub fn new(shares: W) -> Self {
        Self {
            began: None,
            taken: 0,
            strangers: 0,
            shares,
            link: core::marker::PhantomData,
        }
    }

    /// Takes a lookup for a publisher that `link` brought, who was admitted before or is a stranger. Answers whether there was one.
    pub fn take(&mut self, now: Instant, limits: &SourceLimits, known: bool, link: L) -> bool {
        if !self.has(now, limits, known, link) {
            return false;
        }
        self.began.get_or_insert(now);
        self.taken += 1;
        if !known && let Some(at) = self.share(link) {
            self.shares.as_mut()[at].get_or_insert((link, 0)).1 += 1;
            self.strangers += 1;
        }
        true
    }

    /// Whether [`take`](Self::take) would find one.
    pub fn has(&mut self, now: Instant, limits: &SourceLimits, known: bool, link: L) -> bool {
        let ends = |began: Instant| began.saturating_add_millis(limits.window_ms);
        if self.began.is_some_and(|began| ends(began) <= now) {
            self.began = None;
            (self.taken, self.strangers) = (0, 0);
            self.shares.as_mut().fill(None);
        }
        let its = || {
            let at = self.share(link)?;
            Some(self.shares.as_ref()[at].map_or(0, |(_, taken)| taken))
        };
        self.taken < limits.lookups_per_window
            && (known
                || self.strangers < limits.for_strangers()
                    && its().is_some_and(|its| its < limits.for_one_link()))
    }

    /// The place of what a link's strangers took, if it has one or one is free.
    fn share(&self, link: L) -> Option<usize> {
        let mut shares = self.shares.as_ref().iter();
        shares.position(|share| share.is_none_or(|(whose, _)| whose == link))
    }

    /// Bytes of its places.
    pub fn memory(&self) -> usize {
        size_of_val(self.shares.as_ref())
    }
}
