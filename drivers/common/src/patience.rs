//! How long a driver waits, the same in all of them.
//!
//! Decides: these spans. Leaves to others: every wait of the protocol, which is the core's. Believes: no clock. Bounded by: constants.

use std::time::Duration;

/// How long one address may take to connect.
pub const CONNECT: Duration = Duration::from_secs(10);

/// How often a loop looks whether a name was looked up.
pub const LOOK_UP: Duration = Duration::from_millis(10);

/// How long the handshake of TLS may take on either side; that of the link above has 30 s of its own.
pub const SECURE: Duration = Duration::from_secs(10);

/// How long closing a node or a station waits for goodbyes to be written and answered.
pub const CLOSE: Duration = Duration::from_secs(2);

/// How long a closing link may take to write what is left and to hear the other side close.
pub const CLOSE_LINK: Duration = Duration::from_secs(1);

/// How long a station that drains is waited for: the core ends its links after 5 s, and a socket has a second to be closed.
pub const DRAIN: Duration = Duration::from_secs(7);

/// How long a publication waits for room before it is given back.
pub const PUBLISH: Duration = Duration::from_secs(30);

/// How long a listener waits after an accept that failed (no file descriptor is left, say).
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a machine is not called at most while it has a deadline: a host that slept finds out so soon after it woke, though the
/// timer's clock stood still.
pub const LOOK: Duration = Duration::from_secs(5);

/// When to look again for a spent budget at the soonest: the machine's next deadline may be for something else.
pub const LATER: Duration = Duration::from_millis(100);
