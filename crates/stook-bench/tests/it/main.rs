//! Whole benches, as a program that uses the library runs them: every file here must be listed.

#![allow(clippy::disallowed_methods, reason = "tests make their own files")]

mod cache;
mod fs;
mod launcher;
mod observer;
mod pair;
mod update;
