//! The black-box suite over real loopback sockets.

mod driver;

tidings_suite::suite!(driver::On<false>);
