//! Applies owner, mode, attributes and time to an entry that a copy or an extraction made.
//!
//! - `apply.rs`: the order in which they are set, so that no one else gets access too early.
//! - `rights.rs`: mode and access control list, which mean something only together.
//! - `user.rs`: what this user may set, and which refusals are no errors.
//! - `target.rs`: what they are set on, something open or something that only has a name.

mod apply;
mod error;
mod rights;
mod target;
mod user;

pub use apply::CAPABILITY;
pub(crate) use apply::{OWNER_BITS, Original};
pub(crate) use error::{MetadataError, SET_ATTRIBUTES};
pub(crate) use rights::find;
pub use rights::{ACCESS_ACL, DEFAULT_ACL, Owner, Rights};
pub use target::{MetadataTarget, NamedTarget, OpenTarget};
pub(crate) use user::{
    Current, NewFileDefaults, RefusedAttributes, User, remove_inherited, without_shadows,
};
