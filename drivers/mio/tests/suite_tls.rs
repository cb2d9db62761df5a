//! The black-box suite over TLS.

mod driver;

tidings_suite::suite!(driver::Mio<true>);
