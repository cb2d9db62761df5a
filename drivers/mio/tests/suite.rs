//! The black-box suite over loopback TCP.

mod driver;

tidings_suite::suite!(driver::Mio<false>);
