//! The defects of zstash 1.6, each by its number: what happens here instead.

mod access;
mod content;
mod folder;
