//! The reference app.
fn main() {}
