//! Damaged volumes: what is left is found, and nothing that is not a member is taken for one.

use proptest::prelude::*;
use stook_volume::{Depth, Dialect, Event, Scanner, encode};

use crate::volume::{Volume, content, file, lines};

/// Returns a tar of two members, as it could lie in a tree.
fn nested(has_end: bool) -> Vec<u8> {
    let mut inner = Volume::default();
    inner.add_file("inner-1", 700);
    inner.add_file("inner-2", 3000);
    if has_end { inner.finish() } else { inner.0 }
}

fn add_bytes(volume: &mut Volume, name: &str, data: &[u8]) -> u64 {
    volume.add(&file(name, data.len() as u64), Dialect::Stook, data)
}

fn both_depths(bytes: &[u8]) -> Vec<String> {
    let found = lines(bytes, Depth::Headers);
    assert_eq!(lines(bytes, Depth::Contents), found);
    found
}

#[test]
fn a_sound_volume_is_all_members() {
    let mut volume = Volume::default();
    volume.add_file("a", 0);
    volume.add_file("b", 100_000);
    add_bytes(&mut volume, "c", &content(0, 512));
    assert_eq!(
        both_depths(&volume.finish()),
        ["a@0", "b@1536", "c@103424", "end@105472"]
    );
    assert_eq!(both_depths(&Volume::default().finish()), ["end@0"]);
}

#[test]
fn a_nested_tar_is_content() {
    for has_end in [true, false] {
        let mut volume = Volume::default();
        volume.add_file("a", 10);
        add_bytes(&mut volume, "in.tar", &nested(has_end));
        add_bytes(&mut volume, "twice.tar", &nested(has_end).repeat(2));
        volume.add_file("z", 10);
        let names: Vec<_> = both_depths(&volume.finish())
            .iter()
            .map(|l| l.split('@').next().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["a", "in.tar", "twice.tar", "z", "end"]);
    }
    // Also where it does not begin at the start of the content.
    let mut volume = Volume::default();
    add_bytes(
        &mut volume,
        "in.tar",
        &[&b"odd"[..], &nested(true)].concat(),
    );
    volume.add_file("z", 10);
    assert_eq!(both_depths(&volume.finish())[1..], ["z@12288", "end@14336"]);
}

#[test]
fn a_cut_content_costs_one_member() {
    for kept in [0, 1, 511, 512, 16_384, 16_385, 50_000] {
        let mut volume = Volume::default();
        volume.add_file("a", 10);
        let cut = volume.0.len();
        encode(&file("cut", 70_000), Dialect::Zstash, &mut volume.0).unwrap();
        volume.0.extend(content(1, kept));
        let next = volume.0.len();
        // One long member, so that the missing end falls into its content.
        volume.add_file("b", 200_000);
        let end = volume.0.len();
        let expected = [
            "a@0".to_owned(),
            format!("damage@{cut}+{} CutShort", next - cut),
            format!("b@{next}"),
            format!("end@{end}"),
        ];
        assert_eq!(both_depths(&volume.finish()), expected, "{kept}");
    }
}

#[test]
fn a_cut_content_near_the_end_of_the_volume() {
    let mut volume = Volume::default();
    encode(&file("cut", 70_000), Dialect::Zstash, &mut volume.0).unwrap();
    volume.0.extend(content(1, 16_384));
    volume.add_file("b", 700);
    volume.add_file("c", 700);
    assert_eq!(
        both_depths(&volume.finish()),
        ["damage@0+17920 CutShort", "b@17920", "c@20480", "end@23040"]
    );
}

#[test]
fn a_cut_content_whose_end_falls_on_a_header_needs_the_deeper_scan() {
    let mut volume = Volume::default();
    encode(
        &file("cut", 16_384 + 5 * 2048),
        Dialect::Zstash,
        &mut volume.0,
    )
    .unwrap();
    volume.0.extend(content(1, 16_384));
    for name in ["b", "c", "d", "e", "f", "g", "h"] {
        volume.add_file(name, 300);
    }
    let bytes = volume.finish();
    assert_eq!(lines(&bytes, Depth::Headers)[0], "cut@0");
    let deep = lines(&bytes, Depth::Contents);
    assert_eq!(deep[..3], ["damage@0+17920 CutShort", "b@17920", "c@19968"]);
    assert_eq!(deep.len(), 9);
}

#[test]
fn a_grown_content_is_skipped() {
    let mut volume = Volume::default();
    volume.add_file("a", 1000);
    volume.0.extend(content(9, 5000));
    volume.add_file("b", 10);
    assert_eq!(
        both_depths(&volume.finish()),
        ["a@0", "damage@2560+5000 Checksum", "b@7560", "end@9608"]
    );
}

#[test]
fn every_flipped_bit_of_a_header_costs_that_member_alone() {
    for dialect in [Dialect::Stook, Dialect::Zstash] {
        let mut volume = Volume::default();
        volume.add(&file("a", 700), dialect, &content(1, 700));
        let long = "dir/".repeat(60) + "b";
        let nested = nested(true);
        let start = volume.add(&file(&long, nested.len() as u64), dialect, &nested);
        let header_end = volume.0.len() - nested.len();
        let next = volume.add(&file("c", 700), dialect, &content(1, 700));
        let end = volume.0.len();
        let bytes = volume.finish();
        let offset = usize::try_from(start).unwrap();
        for at in offset..header_end {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let found = lines(&damaged, Depth::Headers);
            let sound = format!("{long}@{start}");
            let expected = [
                format!("damage@{start}+{}", next - start),
                format!("c@{next}"),
                format!("end@{end}"),
            ];
            if dialect == Dialect::Zstash && found[1].ends_with(&format!("@{start}")) {
                // Without a CRC some changes of a record or of the padding make another valid header.
                assert_eq!(found.len(), 4, "{at}: {found:?}");
                continue;
            }
            assert_eq!(found[0], "a@0", "{at}");
            assert_ne!(found[1], sound, "{at}");
            assert!(found[1].starts_with(&expected[0]), "{at}: {found:?}");
            assert_eq!(found[2..], expected[1..], "{at}: {found:?}");
        }
    }
}

#[test]
fn a_lost_header_before_a_sound_member_with_a_nested_tar() {
    let mut volume = Volume::default();
    add_bytes(&mut volume, "in.tar", &nested(true));
    let lost = volume.add_file("lost", 3000);
    let next = volume.add_file("c", 10);
    let end = volume.0.len();
    let mut bytes = volume.finish();
    let start = usize::try_from(lost).unwrap();
    bytes[start..start + 1536].fill(b'?');
    let expected = [
        "in.tar@0".to_owned(),
        format!("damage@{lost}+{} Checksum", next - lost),
        format!("c@{next}"),
        format!("end@{end}"),
    ];
    assert_eq!(both_depths(&bytes), expected);
}

#[test]
fn a_volume_cut_off_anywhere() {
    let mut volume = Volume::default();
    volume.add_file("a", 700);
    add_bytes(&mut volume, "in.tar", &nested(true));
    volume.add_file("c", 700);
    let ends = [2560, 2560 + 1536 + 10_240, 2560 + 1536 + 10_240 + 2560];
    let bytes = volume.finish();
    assert_eq!(lines(&bytes, Depth::Headers)[3], format!("end@{}", ends[2]));
    for len in (0..ends[2])
        .step_by(61)
        .chain([ends[0], ends[1], ends[2], ends[2] + 1])
    {
        let found = lines(&bytes[..len], Depth::Headers);
        let sound = found
            .iter()
            .filter(|line| !line.starts_with("damage"))
            .count();
        let whole = ends.iter().filter(|end| **end <= len).count();
        let data_ends = [1536 + 700, 2560 + 1536 + 10_240, ends[1] + 1536 + 700];
        let readable = data_ends.iter().filter(|end| **end <= len).count();
        assert_eq!(sound, readable, "{len}: {found:?}");
        assert!(
            found.last().unwrap().starts_with("damage"),
            "{len}: {found:?}"
        );
        if ends.contains(&len) {
            assert_eq!(found.last().unwrap(), &format!("damage@{len}+0 Truncated"));
        }
        assert!(whole <= readable);
        let damage = found
            .last()
            .unwrap()
            .split(['@', '+', ' '])
            .map(|n| n.parse::<usize>().unwrap_or(0));
        let numbers: Vec<_> = damage.collect();
        assert_eq!(numbers[1] + numbers[2], len, "{found:?}");
    }
}

#[test]
fn zeros_in_the_middle_do_not_end_the_volume() {
    let mut volume = Volume::default();
    volume.add_file("a", 700);
    let lost = volume.add_file("b", 5000);
    let next = volume.add_file("c", 700);
    let end = volume.0.len();
    let mut bytes = volume.finish();
    bytes[usize::try_from(lost).unwrap()..usize::try_from(next).unwrap()].fill(0);
    let expected = [
        "a@0".to_owned(),
        format!("damage@{lost}+{} EarlyEnd", next - lost),
        format!("c@{next}"),
        format!("end@{end}"),
    ];
    assert_eq!(both_depths(&bytes), expected);
}

#[test]
fn bytes_after_the_end_marker_are_named() {
    let mut volume = Volume::default();
    volume.add_file("a", 700);
    let mut bytes = volume.finish();
    let last = bytes.len() - 3;
    bytes[last] = 1;
    assert_eq!(
        both_depths(&bytes),
        [
            "a@0".to_owned(),
            format!("damage@{last}+3 AfterEnd"),
            "end@2560".to_owned()
        ]
    );
}

#[test]
fn a_member_at_a_later_offset_and_past_the_end() {
    let mut volume = Volume::default();
    volume.add_file("a", 700);
    let second = volume.add_file("b", 700);
    let bytes = volume.finish();
    assert_eq!(Scanner::new(&bytes, second).count(), 2);
    assert_eq!(Scanner::new(&bytes, bytes.len() as u64 + 5).count(), 1);
    assert_eq!(Scanner::new(&bytes, u64::MAX).count(), 1);
}

#[test]
fn noise_holds_no_members() {
    let mut state = 1_u64;
    let mut noise: Vec<u8> = (0..200_000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect();
    for at in (300..190_000).step_by(700) {
        noise[at..at + 5].copy_from_slice(b"ustar");
    }
    assert_eq!(both_depths(&noise), ["damage@0+200000 Checksum"]);
}

/// Returns a volume of both dialects with a nested tar.
fn mixed() -> Vec<u8> {
    let mut volume = Volume::default();
    volume.add_file("a", 700);
    add_bytes(&mut volume, "in.tar", &nested(true));
    volume.add(&file(&("long/".repeat(30) + "b"), 0), Dialect::Zstash, b"");
    volume.add(&file("c", 3000), Dialect::Zstash, &content(1, 3000));
    volume.add_file("d", 5);
    volume.finish()
}

proptest! {
    #[test]
    fn any_damage_is_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_u8..4), 1..6),
    ) {
        let mut bytes = mixed();
        for (from, to, change) in changes {
            if bytes.is_empty() {
                break;
            }
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            match change {
                0 => bytes[from] ^= 0x10,
                1 => drop(bytes.drain(from.min(to)..from.max(to))),
                2 => bytes.truncate(from.max(to)),
                _ => {
                    let piece = bytes[from.min(to)..from.max(to)].to_vec();
                    bytes.splice(to..to, piece);
                }
            }
        }
        for depth in [Depth::Headers, Depth::Contents] {
            let mut at = 0;
            for event in Scanner::new(&bytes, 0).with_depth(depth) {
                match event.unwrap() {
                    Event::Member(member) => {
                        prop_assert!(member.offset == at && member.end > at);
                        prop_assert!(member.data_offset + member.data_len <= bytes.len() as u64);
                        at = member.end;
                    }
                    Event::Damage { offset, len, .. } => {
                        prop_assert!(offset + len <= bytes.len() as u64);
                        at = offset + len;
                    }
                    Event::End { offset } => prop_assert!(offset <= bytes.len() as u64),
                }
            }
        }
    }
}
