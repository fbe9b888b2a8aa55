//! Integration tests of the archive operations, in one binary.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make their own files and fail loudly"
)]

mod attribute_blocks;
mod attributes;
mod built_parts;
mod by_path;
mod byte_for_byte;
mod catalogue;
mod changing_files;
mod compressed;
mod compressed_damage;
mod crafted;
mod damage;
mod defects;
mod evolution;
mod fixtures;
mod flipped_bits;
mod folder;
mod following;
mod generated;
mod given_up_plans;
mod guard;
mod holes;
mod hostile;
mod index_damage;
mod listing;
mod metadata_changes;
mod other_programs;
mod plan;
mod plan_damage;
mod plan_states;
mod planned;
mod read_only_media;
mod recorder;
mod reindexing;
mod reporting;
mod restored_rights;
mod resuming;
mod round_trip;
mod scene;
mod sending;
mod specimen;
mod states;
mod stored;
mod stores;
mod update;
