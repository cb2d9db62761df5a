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
        let ends = |began: Instant| began.saturating_add_millis(limits.window_ms);
        if self.began.is_none_or(|began| ends(began) <= now) {
            self.began = Some(now);
            (self.taken, self.strangers) = (0, 0);
            self.shares.as_mut().fill(None);
        }
        if self.taken >= limits.lookups_per_window {
            return false;
        }
        if !known {
            if self.strangers >= limits.for_strangers() {
                return false;
            }
            let Some(share) = self
                .share(link)
                .filter(|share| **share < limits.for_one_link())
            else {
                return false;
            };
            *share += 1;
            self.strangers += 1;
        }
        self.taken += 1;
        true
    }

    /// What a link's strangers took, if it has a place or one is free.
    fn share(&mut self, link: L) -> Option<&mut u32> {
        let shares = self.shares.as_mut();
        let is_its = |share: &Share<L>| share.is_none_or(|(whose, _)| whose == link);
        let at = shares.iter().position(is_its)?;
        Some(&mut shares[at].get_or_insert((link, 0)).1)
    }

    /// Bytes of its places.
    pub fn memory(&self) -> usize {
        size_of_val(self.shares.as_ref())
    }
}
