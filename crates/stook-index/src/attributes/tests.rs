use proptest::prelude::*;

use super::*;
use crate::blocks::NewBlock;
use crate::types::VolumeId;

/// A member that owns what [`Attributes`] borrow.
#[derive(Debug, Clone)]
struct Member {
    gap: u64,
    header: u64,
    kind: MemberKind,
    mode: u32,
    owner: u64,
    names: (Vec<u8>, Vec<u8>),
    mtime: (i64, u32),
    device: (u32, u32),
    target: Vec<u8>,
    link: Option<Vec<u8>>,
    bits: (bool, bool),
}

impl Member {
    fn at(&self, offset: u64) -> Attributes<'_> {
        Attributes {
            offset,
            content: offset + BLOCK * self.header,
            kind: self.kind,
            mode: self.mode,
            uid: self.owner,
            gid: self.owner / 2,
            uname: &self.names.0,
            gname: &self.names.1,
            mtime: Timestamp {
                seconds: self.mtime.0,
                nanoseconds: self.mtime.1,
            },
            device: self.device,
            target: &self.target,
            link: self.link.as_deref(),
            is_sparse: self.bits.0,
            has_xattrs: self.bits.1,
        }
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(any::<u8>(), 1..9)]
}

fn member() -> impl Strategy<Value = Member> {
    let kind = prop::sample::select(&MemberKind::ALL[..]);
    let device = prop_oneof![3 => Just((0, 0)), 1 => any::<(u32, u32)>()];
    let mtime = (
        prop_oneof![3 => 1_600_000_000_i64..1_700_000_000, 1 => any::<i64>()],
        0_u32..1_000_000_000,
    );
    let head = (1_u64..50, 2_u64..5, kind, 0_u32..0o10000, any::<u8>());
    let tail = (
        (bytes(), bytes()),
        mtime,
        device,
        bytes(),
        prop::option::of(bytes()),
        any::<(bool, bool)>(),
    );
    (head, tail).prop_map(|(head, tail)| Member {
        gap: head.0,
        header: head.1,
        kind: head.2,
        mode: head.3,
        owner: u64::from(head.4) << 30,
        names: tail.0,
        mtime: tail.1,
        device: tail.2,
        target: tail.3,
        link: tail.4,
        bits: tail.5,
    })
}

fn offsets(members: &[Member], first: u64) -> Vec<u64> {
    let mut next = first * BLOCK;
    let step = |member: &Member| {
        let offset = next;
        next += member.gap * BLOCK;
        offset
    };
    members.iter().map(step).collect()
}

fn encode(members: &[Member], offsets: &[u64]) -> Vec<NewBlock> {
    let mut encoder = AttributesEncoder::default();
    for (member, &offset) in members.iter().zip(offsets) {
        encoder.push(&member.at(offset));
    }
    assert_eq!(encoder.members(), members.len() as u64);
    encoder.take()
}

fn decode(block: &NewBlock) -> Option<AttributesBlock> {
    AttributesBlock::decode(VolumeId::plain(3), block.first(), block.data().to_vec())
}

proptest! {
    #[test]
    fn members_come_back_in_order_and_by_offset(
        members in prop::collection::vec(member(), 1..60),
        first in 0_u64..1 << 50,
    ) {
        let offsets = offsets(&members, first);
        let blocks = encode(&members, &offsets);
        prop_assert_eq!(blocks.len(), 1);
        let block = decode(&blocks[0]).unwrap();
        let expected: Vec<Attributes<'_>> =
            members.iter().zip(&offsets).map(|(member, &offset)| member.at(offset)).collect();
        let found: Vec<Attributes<'_>> = block.iter().collect();
        prop_assert_eq!(&found, &expected);
        for member in expected.iter().rev() {
            prop_assert_eq!(block.find(member.offset), Some(*member));
            prop_assert!(block.find(member.offset + 1).is_none());
        }
        prop_assert_eq!((block.first(), block.last()), (offsets[0], offsets[offsets.len() - 1]));
    }

    /// What decodes may be read; nothing else matters.
    #[test]
    fn no_bytes_make_the_decoder_panic(
        members in prop::collection::vec(member(), 1..9),
        changes in prop::collection::vec((any::<u16>(), any::<u8>()), 0..4),
        cut in any::<u16>(),
    ) {
        let block = encode(&members, &offsets(&members, 9)).remove(0);
        let mut data = block.data().to_vec();
        for (at, value) in changes {
            let len = data.len();
            data[usize::from(at) % len] = value;
        }
        data.truncate(usize::from(cut) % (2 * data.len()));
        if let Some(block) = AttributesBlock::decode(VolumeId::plain(0), 512, data) {
            prop_assert_eq!(block.iter().count(), block.len());
            for member in &block {
                prop_assert_eq!(block.find(member.offset), Some(member));
            }
        }
    }
}

#[test]
fn a_block_that_is_cut_off_or_too_long_is_none() {
    let target = b"target".to_vec();
    let member = Member {
        gap: 3,
        header: 3,
        kind: MemberKind::Symlink,
        mode: 0o777,
        owner: 1000,
        names: (b"me".to_vec(), b"us".to_vec()),
        mtime: (1_700_000_000, 5),
        device: (0, 0),
        target,
        link: None,
        bits: (false, false),
    };
    let members = vec![member; 5];
    let block = encode(&members, &offsets(&members, 0)).remove(0);
    let data = block.data();
    assert!(decode(&block).is_some());
    for len in 0..data.len() {
        let cut = data[..len].to_vec();
        assert!(
            AttributesBlock::decode(VolumeId::plain(0), 0, cut).is_none(),
            "{len}"
        );
    }
    let longer = [data, b"\0"].concat();
    assert!(AttributesBlock::decode(VolumeId::plain(0), 0, longer).is_none());
    assert!(AttributesBlock::decode(VolumeId::plain(0), 1, data.to_vec()).is_none());
    let far = u64::MAX - 511;
    assert!(AttributesBlock::decode(VolumeId::plain(0), far, data.to_vec()).is_none());
}

#[test]
fn a_member_of_a_block_full_of_links_is_found_without_all_links_before_it() {
    let (mut members, _) = arc_like(4096);
    for (at, member) in members.iter_mut().enumerate() {
        member.link = Some(format!("first/name/{at}").into_bytes());
        if at % 3 == 0 {
            member.target = format!("target {at}").into_bytes();
        }
        if at % 100 == 7 {
            member.device = (8, 1);
        }
    }
    let offsets = offsets(&members, 0);
    let block = decode(&encode(&members, &offsets)[0]).unwrap();
    for (at, &offset) in offsets.iter().enumerate().rev() {
        assert_eq!(block.find(offset), Some(members[at].at(offset)));
        let mut from = block.iter_from(offset).unwrap();
        assert_eq!(from.next_offset(), Some(offset));
        // Every member has a link, so what is left tells where reading began.
        let begun = members.len() - usize::try_from(from.links_left()).unwrap() - 1;
        assert!(begun <= at && at < begun + 32, "{at}: {begun}");
        assert_eq!(
            from.nth(1),
            members.get(at + 1).map(|next| next.at(offsets[at + 1]))
        );
    }
    assert!(block.find(offsets[9] + BLOCK).is_none());
    assert!(block.iter_from(1).is_none());
}

/// Members as `arc` has them: 50 files to a directory, sizes around 7 KiB, times within a year and to the nanosecond.
fn arc_like(count: u64) -> (Vec<Member>, Vec<u64>) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let mut member = |at: u64| {
        let is_directory = at.is_multiple_of(50);
        // The product of two has a long tail, as the sizes have.
        let size = if is_directory {
            0
        } else {
            21 + next(160) * next(180)
        };
        let seconds = 1_650_000_000 + i64::try_from(next(365 * 86_400)).unwrap();
        Member {
            gap: 3 + size.div_ceil(BLOCK),
            header: 3,
            kind: if is_directory {
                MemberKind::Directory
            } else {
                MemberKind::File
            },
            mode: if is_directory { 0o755 } else { 0o644 },
            owner: 1000,
            names: (b"someone".to_vec(), b"group".to_vec()),
            mtime: (seconds, u32::try_from(next(1_000_000_000)).unwrap()),
            device: (0, 0),
            target: Vec::new(),
            link: None,
            bits: (false, false),
        }
    };
    let members: Vec<Member> = (0..count).map(&mut member).collect();
    let offsets = offsets(&members, 0);
    (members, offsets)
}

#[test]
fn a_member_without_a_target_takes_at_most_12_bytes() {
    let (members, offsets) = arc_like(20_000);
    let blocks = encode(&members, &offsets);
    assert_eq!(blocks.len(), 5);
    let bytes: usize = blocks.iter().map(|block| block.data().len()).sum();
    let tenths = 10 * bytes / members.len();
    assert!(tenths <= 120, "{tenths}");
    let mut found = 0;
    for block in &blocks {
        for (at, member) in decode(block).unwrap().iter().enumerate() {
            assert_eq!(member, members[found + at].at(offsets[found + at]));
        }
        found += usize::try_from(block.entries()).unwrap();
    }
    assert_eq!(found, members.len());
}

#[test]
fn members_that_no_block_can_hold_are_passed_over() {
    let (members, _) = arc_like(6);
    let mut encoder = AttributesEncoder::default();
    encoder.push(&members[0].at(1024));
    encoder.push(&members[1].at(1024));
    encoder.push(&members[2].at(512));
    encoder.push(&members[3].at(5001));
    let content = Attributes {
        content: 4096 + 77,
        ..members[4].at(4096)
    };
    encoder.push(&content);
    encoder.end_block();
    // Also across blocks.
    encoder.push(&members[5].at(1024));
    assert_eq!(encoder.members(), 1);
    assert_eq!(encoder.take().len(), 1);
    // An encoder is for one volume.
    encoder.push(&members[5].at(0));
    assert_eq!(encoder.take().len(), 0);
}

/// The example of docs/format.md.
#[test]
fn a_block_has_these_bytes() {
    let mut encoder = AttributesEncoder::default();
    encoder.push(&Attributes {
        offset: 1024,
        content: 1024 + 1536,
        mode: 0o644,
        mtime: Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 5,
        },
        ..Attributes::default()
    });
    let block = encoder.take().remove(0);
    let hex: String = block
        .data()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let expected = "01 01 30a40300000000  00 00  03 00  00 00  80e2cfaa868080808001 00  05 00  00 00  00 00 00";
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");
    assert!(std::fs::read_to_string(page).unwrap().contains(expected));
    assert_eq!(hex, expected.replace(' ', ""));
}
