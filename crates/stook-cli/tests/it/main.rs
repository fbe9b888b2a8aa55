//! The program as a user meets it: what it prints, how it ends, what is on disk then; and the rules of the workspace.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests make their own files, say what they skip, and fail loudly"
)]

mod bad_archive;
mod bad_input;
mod bench_cache;
mod bench_fileset;
mod bench_fs;
mod bench_report;
mod bench_study;
mod bench_update;
mod commands;
mod compressed;
mod copy;
mod crash;
mod crash_calls;
mod deletions;
mod exit_status;
mod export;
mod hard_links;
mod interrupt;
mod into_archive;
mod json;
mod json_schema;
mod layers;
mod long_paths;
mod mount;
mod mount_kills;
mod mount_stores;
mod native;
mod no_locks;
mod no_space;
mod own_files;
mod patterns;
mod place;
mod plan;
mod profile;
mod releases;
mod remove;
mod remove_archived;
mod scarce;
mod slow;
mod small_work;
mod store;
mod stored;
mod timings;
mod two_writers;
mod walk;
mod walk_select;
mod walk_summary;
mod zodb;
mod zstash_defects;
mod zstash_front;
mod zstash_stores;
