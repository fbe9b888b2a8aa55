//! Seeded sets of many small files, for benches and demonstrations.
//!
//! Sizes follow the ARC scratch comparison, names and directories do not matter much. The same seed gives the same
//! bytes, names and modification times on every machine. One thread: making files is not what is measured. Apart from
//! `stook bench fileset`: what tests and measures the program must not be made by it, and recorded runs are of this law.

use crate::failure::Describe;
use crate::random::Random;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, futimens, mkdirat, openat, utimensat,
};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const SMALLEST: usize = 21;
const LARGEST: usize = 1_258_291;
/// Logarithm of the median, 1,785 bytes, and the spread that gives a mean near 7,165 bytes.
const MEDIAN: f64 = 1785.0;
const SIGMA: f64 = 1.667;
const TEXT_LINE: &[u8] = b"lorem ipsum dolor sit amet 0123456789 \n";

/// What was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSet {
    /// Regular files.
    pub files: u64,
    /// Directories that hold files.
    pub directories: u64,
    /// Bytes in the files.
    pub bytes: u64,
}

/// Makes `files` files below `root`, which must not exist: log-normal sizes of 21 B to 1.2 MiB, every second file
/// incompressible, the others text, 1 to 99 files to a directory.
///
/// # Errors
/// When `root` exists, or at the first failing system call.
pub fn arc(root: &Path, files: u64, seed: u64) -> io::Result<FileSet> {
    mkdirat(CWD, root, directory_mode())
        .describe("make the directory", root.as_os_str().as_bytes())?;
    let mut maker = Maker::new(seed);
    let mut left = files;
    while left > 0 {
        let wanted = left.min(1 + maker.random.below(99));
        maker.fill_next_directory(root, wanted)?;
        left -= wanted;
    }
    Ok(maker.made)
}

fn directory_mode() -> Mode {
    Mode::from_raw_mode(0o755)
}

struct Maker {
    random: Random,
    noise: Vec<u8>,
    text: Vec<u8>,
    made: FileSet,
}

impl Maker {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let noise = random.bytes(4 << 20);
        Self {
            random,
            noise,
            text: TEXT_LINE.repeat(40_000),
            made: FileSet::default(),
        }
    }

    fn fill_next_directory(&mut self, root: &Path, files: u64) -> io::Result<()> {
        let (outer, inner) = (self.made.directories / 100, self.made.directories % 100);
        let group = root.join(format!("10{outer:03}"));
        if inner == 0 {
            mkdirat(CWD, &group, directory_mode())
                .describe("make the directory", group.as_os_str().as_bytes())?;
        }
        let path = group.join(format!("{inner:02}"));
        let shown_path = path.as_os_str().as_bytes();
        mkdirat(CWD, &path, directory_mode()).describe("make the directory", shown_path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, &path, flags, Mode::empty()).describe("open", shown_path)?;
        for _ in 0..files {
            self.make_file(&directory)
                .describe("make a file in", shown_path)?;
        }
        futimens(&directory, &self.times()).describe("set the time of", shown_path)?;
        utimensat(CWD, &group, &self.times(), AtFlags::empty())
            .describe("set the time of", shown_path)?;
        self.made.directories += 1;
        Ok(())
    }

    fn make_file(&mut self, directory: &OwnedFd) -> io::Result<()> {
        let name = format!("f{:07}.dat", self.made.files);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::from_raw_mode(0o644))?;
        let size = self.size();
        let (random, source) = (
            &mut self.random,
            if self.made.files % 2 == 1 {
                &self.noise
            } else {
                &self.text
            },
        );
        let start = random.index(source.len() - size + 1);
        let mut rest = &source[start..start + size];
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = &rest[written..];
        }
        futimens(&file, &self.times())?;
        self.made.files += 1;
        self.made.bytes += size as u64;
        Ok(())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 21..=1258291"
    )]
    fn size(&mut self) -> usize {
        let size = MEDIAN * (SIGMA * self.random.normal()).exp();
        size.clamp(SMALLEST as f64, LARGEST as f64) as usize
    }

    /// A time in 2023 or 2024, to the nanosecond.
    fn times(&mut self) -> Timestamps {
        let time = Timespec {
            tv_sec: 1_672_531_200 + self.random.below(63_072_000) as i64,
            tv_nsec: self.random.below(1_000_000_000) as i64,
        };
        Timestamps {
            last_access: time,
            last_modification: time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FileSet, Maker, arc};
    use crate::{Compare, Snapshot, TempDir};

    #[test]
    fn the_same_seed_gives_the_same_tree() {
        let directory = TempDir::new().unwrap();
        let made: Vec<FileSet> = [("a", 7), ("b", 7), ("c", 8)]
            .map(|(name, seed)| arc(&directory.join(name), 500, seed).unwrap())
            .into();
        assert_eq!((made[0], made[0].files), (made[1], 500));
        assert_ne!(made[0].bytes, made[2].bytes);
        let [a, b] = ["a", "b"].map(|name| Snapshot::take(&directory.join(name)).unwrap());
        assert_eq!(a.difference(&b, &Compare::everything()), [""; 0]);
        let files = a.entries().filter(|(_, facts)| facts.md5.is_some());
        assert_eq!(
            files.map(|(_, facts)| facts.size).sum::<u64>(),
            made[0].bytes
        );
    }

    #[test]
    fn an_existing_directory_is_refused() {
        let directory = TempDir::new().unwrap();
        assert_eq!(
            arc(directory.path(), 1, 7).unwrap_err().kind(),
            std::io::ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn sizes_follow_the_law() {
        let mut maker = Maker::new(7);
        let mut sizes: Vec<usize> = (0..200_000).map(|_| maker.size()).collect();
        sizes.sort_unstable();
        let (median, mean) = (sizes[100_000], sizes.iter().sum::<usize>() / 200_000);
        assert!((1_740..1_830).contains(&median), "median {median}");
        assert!((6_700..7_500).contains(&mean), "mean {mean}");
        assert!(sizes[0] == 21 && sizes[199_999] <= 1_258_291);
    }
}
