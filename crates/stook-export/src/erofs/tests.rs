//! Images read back without a kernel: the names, kinds and numbers that were archived are there, found as the kernel finds them.

use std::collections::BTreeMap;

use stook_archive::{Archive, AsOf, OpenOptions, Silent, WriteOptions, create};
use stook_testkit::{Kind, Snapshot, TempTree, Tree};

use super::format::{BLOCK, INODE, MAGIC, SLOT, SUPER};
use super::{export_erofs, read_record};
use crate::RecordedVolume;

/// An image in memory.
struct Image(Vec<u8>);

/// What an inode says.
#[derive(Debug, Clone, Copy)]
struct Facts {
    number: u64,
    mode: u16,
    size: u64,
}

impl Image {
    fn number<const LEN: usize>(&self, at: u64) -> [u8; LEN] {
        let at = usize::try_from(at).unwrap();
        self.0[at..at + LEN].try_into().unwrap()
    }

    fn place(&self, number: u64) -> u64 {
        let first = u32::from_le_bytes(self.number(SUPER as u64 + 40));
        u64::from(first) * BLOCK + number * SLOT
    }

    fn facts(&self, number: u64) -> Facts {
        let at = self.place(number);
        Facts {
            number,
            mode: u16::from_le_bytes(self.number(at + 4)),
            size: u64::from_le_bytes(self.number(at + 8)),
        }
    }

    /// The bytes of a directory or a link.
    fn content(&self, facts: Facts) -> &[u8] {
        let at = self.place(facts.number);
        let [format, xattrs] = [0, 2].map(|place| u16::from_le_bytes(self.number(at + place)));
        let xattrs = match xattrs {
            0 => 0,
            units => 12 + 4 * (u64::from(units) - 1),
        };
        let begin = match format >> 1 {
            0 => u64::from(u32::from_le_bytes(self.number(at + 16))) * BLOCK,
            2 => at + INODE + xattrs,
            other => panic!("layout {other}"),
        };
        let begin = usize::try_from(begin).unwrap();
        &self.0[begin..][..usize::try_from(facts.size).unwrap()]
    }

    /// The names in a directory, with the numbers of their inodes; requires that they ascend.
    fn names(&self, directory: Facts) -> Vec<(Vec<u8>, u64)> {
        let mut names = Vec::new();
        for block in self.content(directory).chunks(512) {
            let field = |at: usize| usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
            let count = field(8) / 12;
            for place in 0..count {
                let begin = field(place * 12 + 8);
                let end = match place + 1 {
                    next if next < count => field(next * 12 + 8),
                    _ => block.len(),
                };
                let name = block[begin..end].split(|&byte| byte == 0).next().unwrap();
                let number = block[place * 12..][..8].try_into().unwrap();
                names.push((name.to_vec(), u64::from_le_bytes(number)));
            }
        }
        assert!(names.is_sorted_by(|one, other| one.0 < other.0));
        names
    }

    fn walk(&self) -> BTreeMap<Vec<u8>, Facts> {
        let root = u16::from_le_bytes(self.number(SUPER as u64 + 14));
        let mut found = BTreeMap::from([(Vec::new(), self.facts(u64::from(root)))]);
        let mut waiting = vec![(Vec::new(), u64::from(root), u64::from(root))];
        while let Some((path, number, above)) = waiting.pop() {
            for (name, child) in self.names(self.facts(number)) {
                match &*name {
                    b"." => assert_eq!(child, number),
                    b".." => assert_eq!(child, above),
                    name => {
                        let mut path = path.clone();
                        if !path.is_empty() {
                            path.push(b'/');
                        }
                        path.extend_from_slice(name);
                        let facts = self.facts(child);
                        if facts.mode >> 12 == 4 {
                            waiting.push((path.clone(), child, number));
                        }
                        assert!(found.insert(path, facts).is_none());
                    }
                }
            }
        }
        found
    }
}

fn exported(tree: &TempTree) -> (Image, Vec<RecordedVolume>) {
    let (folder, image) = (tree.beside("archive"), tree.beside("image"));
    create(tree.path(), &folder, &WriteOptions::default(), &Silent).unwrap();
    let mut archive = Archive::open(&folder, &OpenOptions::default()).unwrap();
    let report = export_erofs(&mut archive, &image, AsOf::Now, &Silent).unwrap();
    assert_eq!(report.failed, 0);
    let record = read_record(&image).unwrap();
    assert_eq!(record.state, report.state);
    let bytes = std::fs::read(&image).unwrap();
    assert_eq!(bytes.len() as u64, report.bytes);
    let image = Image(bytes);
    assert_eq!(u32::from_le_bytes(image.number(SUPER as u64)), MAGIC);
    (image, record.volumes)
}

#[test]
fn every_name_of_a_tree_is_in_its_image() {
    for tree in [Tree::torture(), Tree::random(5, 600), Tree::new()] {
        let tree = TempTree::new(&tree).unwrap();
        let (image, volumes) = exported(&tree);
        for volume in volumes {
            let path = tree.beside("archive").join(&volume.name);
            assert_eq!(std::fs::metadata(path).unwrap().len(), volume.bytes);
        }
        let found = image.walk();
        let mut expected = Snapshot::take(tree.path()).unwrap();
        expected.retain(|_, facts| facts.kind != Kind::Socket);
        for (path, facts) in expected.entries() {
            let here = found.get(path).unwrap_or_else(|| panic!("{path:?}"));
            let is_directory = facts.kind == Kind::Directory;
            assert_eq!(here.mode >> 12 == 4, is_directory, "{path:?}");
            if let Some(target) = &facts.target {
                assert_eq!(image.content(*here), target, "{path:?}");
            }
        }
        // The root is in the image in any case.
        let root = usize::from(expected.get("").is_none());
        assert_eq!(found.len(), expected.len() + root);
    }
}
