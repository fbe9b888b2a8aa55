//! Trees with names, so that every crate means the same thing by "odd names" or "deep".
//!
//! They hold what an archiver, walker or remover gets wrong: boundaries of the tar format, sort order traps, names
//! that a shell or a terminal would act on. Contents come from a fixed seed. All can be made without privileges,
//! except the devices that [`Tree::torture`] adds where it may.

use super::{Tree, character_device, dir, fifo, file, socket, symlink};
use crate::random::Random;
use crate::{TempDir, tree};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

impl Tree {
    /// Returns a small tree with a bit of everything an ordinary user has, and times with fractions and before 1970.
    #[must_use]
    pub fn basic() -> Self {
        let mut random = Random::new(1);
        let mut tree = tree! {
            "top.txt" => file(b"top level\n").mtime(1_596_000_000, 0),
            "empty" => file(b"").mtime(1_612_000_000, 500_000_000),
            "half" => file(b"half a second").mtime(1_700_000_000, 500_000_000),
            "old" => file(b"before 1970").mtime(-2, 250_000_000),
            "pipe" => fifo(),
            "good-link" => symlink("top.txt"),
            "bad-link" => symlink("missing"),
            "dir-link" => symlink("a"),
            "emptydir/" => dir().mtime(1_602_886_670, 500_000_000),
            "a/one.bin" => file(random.bytes(513)),
            "a/two.bin" => file(random.bytes(512)).mode(0o600),
            "a/deep/er/three.bin" => file(random.bytes(70_000)).mode(0o755),
        };
        for number in 0..40_u32 {
            let size = random.index(20_000);
            let entry = file(random.bytes(size))
                .mtime(1_580_000_000 + i64::from(number), number * 23_456_789);
            tree.insert(format!("many/f{number:03}.dat"), entry);
        }
        tree
    }

    /// Returns `levels` directories one in the other, named `d`, with a file at the top and one at the bottom.
    ///
    /// From 2,048 levels on the bottom cannot be reached by a path of `PATH_MAX` bytes.
    #[must_use]
    pub fn deep(levels: usize) -> Self {
        let mut tree = tree! { "top" => file(b"top") };
        tree.insert(
            [b"d/".repeat(levels).as_slice(), b"bottom"].concat(),
            file(b"bottom"),
        );
        tree
    }

    /// Returns `files` small files in one directory.
    #[must_use]
    pub fn wide(files: usize) -> Self {
        let mut tree = tree! { "wide/" => dir() };
        for number in 0..files {
            tree.insert(
                format!("wide/f{number:07}"),
                file(format!("content of {number}\n")),
            );
        }
        tree
    }

    /// Returns symbolic links of every sort: good, broken, to directories, absolute, long, with bytes a shell acts on.
    #[must_use]
    pub fn links() -> Self {
        let mut tree = tree! {
            "file" => file(b"linked to"),
            "dir/inside" => file(b"inside"),
            "to-file" => symlink("file").mtime(1_500_000_000, 999_999_999),
            "to-link" => symlink("to-file"),
            "to-dir" => symlink("dir"),
            "to-dir-slash" => symlink("dir/"),
            "dir/up" => symlink("../file"),
            "through" => symlink("to-dir/inside"),
            "broken" => symlink("no/such/file"),
            "absolute" => symlink("/nonexistent/stook"),
            "outside" => symlink("../../../../nonexistent"),
            "shell" => symlink("$(touch PWNED); `touch PWNED`"),
            "newline" => symlink("a\nb"),
            "raw" => symlink(b"\xff\xfe"),
            "only-links/link" => symlink("../dir"),
        };
        for length in [99_usize, 100, 101, 255, 256, 1000, 4000] {
            tree.insert(format!("long-{length}"), symlink("t".repeat(length)));
        }
        tree
    }

    /// Returns groups of hard links: in one directory, across directories, of an empty file, a symbolic link and a fifo.
    #[must_use]
    pub fn hardlinks() -> Self {
        tree! {
            "a.txt" => file(b"shared by three\n"),
            "hard.txt" => hardlink("a.txt"),
            "z/hard.txt" => hardlink("a.txt"),
            "alone.txt" => file(b"one name only\n"),
            "b/early" => hardlink("c/late"),
            "c/late" => file(Random::new(2).bytes(100_000)).mode(0o600),
            "empty-1" => file(b""),
            "empty-2" => hardlink("empty-1"),
            "link-1" => symlink("a.txt"),
            "link-2" => hardlink("link-1"),
            "pipe-1" => fifo(),
            "pipe-2" => hardlink("pipe-1"),
            "same-content" => file(b"shared by three\n"),
        }
    }

    /// Returns names that break careless programs, with contents equal to the names.
    #[must_use]
    pub fn odd_names() -> Self {
        let long: Vec<Vec<u8>> = [99, 100, 101, 254, 255]
            .iter()
            .map(|length| vec![b'n'; *length])
            .collect();
        let wide = "ü".repeat(50).into_bytes();
        let mut tree = Self::new();
        for name in ODD_NAMES
            .iter()
            .copied()
            .chain(long.iter().map(Vec::as_slice))
            .chain([wide.as_slice()])
        {
            tree.insert(name, file(name));
            tree.insert([b"dirs/", name, b"/leaf"].concat(), file(name));
        }
        // The order of an archive puts "a.b/" and "a-b/" around "a/", unlike a plain sort of paths.
        for path in [
            "a.txt", "b", "A/f", "a/f", "a-b/f", "a.b/f", "a/z/f", "a0/f",
        ] {
            tree.insert(format!("order/{path}"), file(path));
        }
        tree.insert("order/z/", dir());
        tree.insert(
            format!("{}leaf", format!("{}/", "d".repeat(60)).repeat(6)),
            file(b"path over 255 bytes"),
        );
        tree
    }

    /// Returns files with holes at the start, in the middle, at the end, and nothing but a hole.
    #[must_use]
    pub fn sparse() -> Self {
        let block = [b'x'; 4096];
        let mut many = Vec::new();
        for number in 0..64_u64 {
            many.push((number * 65_536, &block[..]));
        }
        tree! {
            "dense" => file(vec![b'd'; 65_536]),
            "hole-only" => sparse(&[], 1 << 20),
            "hole-first" => sparse(&[(1 << 20, b"data at the end")], (1 << 20) + 15),
            "hole-last" => sparse(&[(0, b"data at the start")], 1 << 20),
            "hole-middle" => sparse(&[(0, &block), (4 << 20, &block)], (4 << 20) + 4096),
            "odd-size" => sparse(&[(123_457, b"unaligned")], 999_999),
            "many-holes" => sparse(&many, 64 * 65_536),
            "written-zeros" => file(vec![0; 65_536]),
        }
    }

    /// Returns symbolic links that never end when followed.
    #[must_use]
    pub fn loops() -> Self {
        tree! {
            "self" => symlink("self"),
            "ping" => symlink("pong"),
            "pong" => symlink("ping"),
            "dir/up" => symlink(".."),
            "dir/here" => symlink("."),
            "dir/sub/root" => symlink("../.."),
            "dir/sub/file" => file(b"reached in many ways"),
            "below-self" => symlink("self/file"),
        }
    }

    /// Returns all of the above in one tree, with sockets, odd modes and times, extended attributes, and devices
    /// where this process may make them. Every entry can be read by its owner.
    #[must_use]
    pub fn torture() -> Self {
        let mut tree = Self::new();
        let parts = [
            ("basic", Self::basic()),
            ("deep", Self::deep(60)),
            ("wide", Self::wide(300)),
            ("links", Self::links()),
            ("hardlinks", Self::hardlinks()),
            ("odd-names", Self::odd_names()),
            ("sparse", Self::sparse()),
            ("loops", Self::loops()),
            ("modes", modes()),
            ("times", times()),
            ("xattrs", xattrs()),
        ];
        for (name, part) in parts {
            tree.graft(name, &part);
        }
        tree.insert("special/socket", socket());
        tree.insert("special/pipe", fifo().mode(0o622));
        if can_make_devices() {
            tree.insert("special/null", character_device(1, 3).mode(0o666));
            tree.insert("special/far", character_device(511, 70_000));
            tree.insert("special/loop", super::block_device(7, 200));
        }
        tree
    }

    /// Returns about `entries` random entries: files, directories, links, fifos; the same for the same seed.
    #[must_use]
    pub fn random(seed: u64, entries: usize) -> Self {
        let mut random = Random::new(seed);
        let mut tree = Self::new();
        let mut directories = vec![Vec::new()];
        let mut files: Vec<Vec<u8>> = Vec::new();
        for number in 0..entries {
            let parent: &Vec<u8> = &directories[random.index(directories.len())];
            let path = [
                parent.as_slice(),
                format!("{}{number}", NAMES[random.index(NAMES.len())]).as_bytes(),
            ]
            .concat();
            let time = (
                1_500_000_000 + random.below(1 << 28).cast_signed(),
                u32::try_from(random.below(1_000_000_000)).unwrap_or(0),
            );
            let entry = match random.below(20) {
                0..=3 => {
                    directories.push([path.as_slice(), b"/"].concat());
                    dir()
                }
                4 | 5 => symlink(NAMES[random.index(NAMES.len())]),
                6 if !files.is_empty() => super::hardlink(&files[random.index(files.len())]),
                7 => fifo(),
                _ => {
                    files.push(path.clone());
                    let size = random.index(4096);
                    file(random.bytes(size)).mode([0o644, 0o600, 0o755, 0o444][random.index(4)])
                }
            };
            tree.insert(path, entry.mtime(time.0, time.1));
        }
        tree
    }
}

/// Names that shells, terminals, decoders and other programs stumble over.
const ODD_NAMES: &[&[u8]] = &[
    b" ",
    b"  two  ",
    b"-dash",
    b"--",
    b"-rf",
    b".hidden",
    b"...",
    b"..a",
    b"~",
    b"#",
    b"%41",
    b"%",
    b"a%2Fb",
    b"tab\tname",
    b"new\nline",
    b"\n",
    b"carriage\rreturn",
    b"bell\x07",
    b"escape\x1b[31mred",
    b"del\x7f",
    b"quote'\"",
    b"back\\slash",
    b"\\n",
    b"star*?[x]",
    b"[!a]",
    b"$(touch PWNED)",
    b"`touch PWNED`",
    b"semi;colon & more | pipe",
    b"{a,b}",
    b"a=b",
    b"10 path=x",
    b"C:\\con",
    b"name.tar",
    b"index.db",
    "ünï-cødé".as_bytes(),
    "u\u{308}ni".as_bytes(),
    "日本語".as_bytes(),
    "🌾 stook".as_bytes(),
    "\u{202e}rtl".as_bytes(),
    "\u{feff}bom".as_bytes(),
    "\u{10ffff}".as_bytes(),
    b"latin1-\xe9",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"mixed-\xc3\xbc-\xfc",
];

/// Stems of random names: different sort orders and encodings.
const NAMES: [&str; 8] = [
    "f",
    "a-",
    "a.",
    "A",
    "ü",
    "long name with spaces ",
    "_",
    "日",
];

fn modes() -> Tree {
    let mut tree = Tree::new();
    for mode in [
        0o400, 0o444, 0o600, 0o640, 0o666, 0o711, 0o777, 0o1644, 0o2755, 0o4755, 0o7777,
    ] {
        tree.insert(
            format!("file-{mode:04o}"),
            file(format!("{mode:o}")).mode(mode),
        );
    }
    for mode in [0o500, 0o555, 0o700, 0o750, 0o1777, 0o2755] {
        tree.insert(format!("dir-{mode:04o}/"), dir().mode(mode));
        tree.insert(format!("dir-{mode:04o}/inside"), file(b"inside"));
        tree.insert(format!("empty-{mode:04o}/"), dir().mode(mode));
    }
    tree
}

fn times() -> Tree {
    let mut tree = Tree::new();
    let times = [
        (0, 0),
        (0, 1),
        (-1, 0),
        (-1, 999_999_999),
        (-2, 250_000_000),
        (-2_000_000_000, 0),
        (1, 999_999_999),
        (1_577_934_245, 0),
        (1_600_000_000, 500_000_000),
        (1_600_000_000, 999_999_999),
        (1_600_000_000, 999_999_500),
        (1_600_000_000, 500),
        (1_600_000_000, 1_500),
        (1_700_000_000, 123_456_789),
        (2_147_483_647, 999_999_999),
        (2_147_483_648, 0),
        (4_102_444_800, 7),
        (8_589_934_591, 999_999_999),
        (8_589_934_592, 0),
    ];
    for (number, (seconds, nanoseconds)) in times.into_iter().enumerate() {
        tree.insert(
            format!("file-{number:02}"),
            file(b"t").mtime(seconds, nanoseconds),
        );
        tree.insert(
            format!("dir-{number:02}/"),
            dir().mtime(seconds, nanoseconds),
        );
        tree.insert(
            format!("link-{number:02}"),
            symlink("t").mtime(seconds, nanoseconds),
        );
    }
    tree
}

fn xattrs() -> Tree {
    tree! {
        "one" => file(b"1").xattr("user.stook", b"value"),
        "several" => file(b"2").xattr("user.b", b"2").xattr("user.a", b"1").xattr("user.c.d", b""),
        "binary" => file(b"3").xattr("user.bin", b"\x00\n=\xff\x00"),
        "equals" => file(b"4").xattr("user.a=b", b"c=d"),
        "unicode" => file(b"5").xattr("user.ünï", "wärt".as_bytes()),
        "long" => file(b"6").xattr("user.long", vec![b'v'; 2000]),
        "dir/" => dir().xattr("user.on-dir", b"yes"),
        "full/" => dir().xattr("user.on-dir", b"with contents"),
        "full/inside" => file(b"7"),
    }
}

/// Tells whether this process may make device nodes in the temporary directory.
#[must_use]
pub fn can_make_devices() -> bool {
    let Ok(scratch) = TempDir::new() else {
        return false;
    };
    mknodat(
        CWD,
        scratch.join("null"),
        FileType::CharacterDevice,
        Mode::RUSR,
        makedev(1, 3),
    )
    .is_ok()
}
