//! The black-box suite every tidings driver passes.
