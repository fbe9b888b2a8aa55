//! interim
pub fn tables() {}
