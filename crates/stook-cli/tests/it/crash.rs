//! kill -9 at any moment of create and update: the same command, run again, gives what an undisturbed run gives.
//!
//! Half of the points are random moments of the run, the other half come right after a file with a certain name is
//! first seen in the archive's folder, which hits the short stretches between two steps of a commit. The number of
//! points is `STOOK_CRASH_POINTS` (20), their seed `STOOK_CRASH_SEED`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use stook_testkit::{Compare, Fact, Random, Tree, file};

use crate::place::{Place, Ran, dumps, names, wait_until};

/// Files that come and go in the folder of an archive that is being written.
const SIGHTS: [&str; 14] = [
    "stook.lock",
    "index.db.partial",
    "index.db",
    "index.db-journal",
    "000000.rows.partial",
    "000000.rows.partial-journal",
    "000000.tar",
    "000001.tar.partial",
    "000001.rows.partial-journal",
    "000001.tar",
    "000002.rows.partial",
    "000003.tar.partial",
    "000004.tar",
    "000005.tar.partial",
];

/// So many small files that a run with volumes of 20 KiB takes long enough to be caught in the middle.
pub(crate) fn slow_tree() -> Tree {
    let mut tree = Tree::new();
    for number in 0..600 {
        tree.insert(format!("d{}/f{number}", number % 6), file([b'x'; 2000]));
    }
    tree
}

/// Some hundred files, a few of them of several MiB, and links.
fn crash_tree(random: &mut Random) -> Tree {
    let mut tree = Tree::basic();
    tree.graft("hard", &Tree::hardlinks());
    tree.graft("links", &Tree::links());
    for number in 0..250 {
        let len = random.index(12_000);
        tree.insert(
            format!("many/{}/f{number}", number % 5),
            file(random.bytes(len)),
        );
    }
    for (name, mebibytes) in [("large", 3), ("many/1/larger", 6), ("z", 2)] {
        tree.insert(name, file(random.bytes(mebibytes << 20)));
    }
    tree
}

fn change(source: &Path, random: &mut Random) {
    std::fs::remove_dir_all(source.join("many/2")).unwrap();
    std::fs::write(source.join("large"), random.bytes(5 << 20)).unwrap();
    for number in 0..120 {
        let path = source.join(format!("many/1/f{}", number * 2));
        std::fs::write(path, random.bytes(4000 + number)).unwrap();
    }
}

/// Runs the commands on a fresh archive and puts it aside as `undisturbed`.
pub(crate) fn undisturbed(place: &Place, commands: &[&[&str]]) -> PathBuf {
    for command in commands {
        place.stderr(command);
    }
    let kept = place.path("undisturbed");
    std::fs::rename(place.path("arc"), &kept).unwrap();
    kept
}

/// Asserts that two archives hold the same: names, volumes byte for byte, every row of every table but for times.
pub(crate) fn assert_equal_archives(expected: &Path, found: &Path) {
    assert_eq!(names(expected), names(found));
    assert_sound(found);
    for name in names(expected).iter().filter(|name| name.contains(".tar")) {
        let same =
            std::fs::read(expected.join(name)).unwrap() == std::fs::read(found.join(name)).unwrap();
        assert!(same, "{name} differs");
    }
    let [expected, found] = [expected, found].map(|archive| archive.join("index.db"));
    let dumps = dumps(&[&expected, &found]);
    let [expected, found] = [&dumps[0], &dumps[1]].map(|dump| dump.lines().collect::<Vec<_>>());
    assert!(!expected.is_empty());
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(expected, found);
    }
    assert_eq!(expected.len(), found.len(), "rows");
}

/// Asserts that an archive has no damage: what [`dumps`] leaves out is compared by the check.
fn assert_sound(archive: &Path) {
    let checked = Command::new(env!("CARGO_BIN_EXE_stook"))
        .arg("check")
        .arg(archive)
        .output();
    let checked = Ran::of(checked.unwrap());
    assert_eq!(checked.status, Some(0), "{}", checked.stderr);
}

/// When the process is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    After(Duration),
    AtSightOf(&'static str),
}

impl Moment {
    fn draw(random: &mut Random, point: usize, whole: Duration) -> Self {
        match point % 2 {
            0 if point.is_multiple_of(10) => Self::After(Duration::ZERO),
            0 => Self::After(whole.mul_f64(random.unit() * 1.05)),
            _ => Self::AtSightOf(SIGHTS[random.index(SIGHTS.len())]),
        }
    }

    /// Lets the process run until the moment comes, or it ends.
    fn wait(self, child: &mut Child, archive: &Path) -> bool {
        let started = Instant::now();
        match self {
            Self::After(delay) => wait_until(child, || started.elapsed() >= delay),
            Self::AtSightOf(name) => {
                // A volume may be compressed.
                let files = [name.to_owned(), format!("{name}.zst")].map(|name| archive.join(name));
                let is_there = |file: &PathBuf| std::fs::symlink_metadata(file).is_ok();
                wait_until(child, || files.iter().any(is_there))
            }
        }
    }
}

/// Runs a command and kills it; returns true if it was killed before its end.
fn killed(place: &Place, arguments: &[&str], moment: Moment) -> bool {
    let mut command = place.command(arguments);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    moment.wait(&mut child, &place.path("arc"));
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

/// Runs a command again after kills. `create` may find that all was done.
pub(crate) fn complete(place: &Place, arguments: &[&str]) {
    let ran = place.run(arguments);
    let was_done = ran.status == Some(1) && ran.stderr.contains("it is an archive already");
    assert!(
        ran.status == Some(0) || was_done,
        "{arguments:?}: {}",
        ran.stderr
    );
}

struct Crashes {
    place: Place,
    random: Random,
    kills: usize,
    seen: BTreeMap<String, usize>,
}

impl Crashes {
    /// Kills and completes a command again and again; `before` is the archive to start from.
    fn run(&mut self, points: usize, arguments: &[&str], before: Option<&str>, expected: &Path) {
        let started = Instant::now();
        self.prepare(before);
        self.place.stderr(arguments);
        let mut whole = started.elapsed();
        assert_equal_archives(expected, &self.place.path("arc"));
        for point in 0..points {
            self.prepare(before);
            let mut moments = vec![Moment::draw(&mut self.random, point, whole)];
            while self.random.below(4) == 0 {
                let next = self.random.index(1000);
                moments.push(Moment::draw(&mut self.random, next, whole));
            }
            println!("point {point} of {}: {moments:?}", arguments[0]);
            for (again, &moment) in moments.iter().enumerate() {
                let started = Instant::now();
                let is_killed = killed(&self.place, arguments, moment);
                self.kills += usize::from(is_killed);
                if again == 0 && !is_killed {
                    // The machine was busier when the whole run was timed.
                    whole = whole.min(started.elapsed());
                }
                for name in self.place.names("arc") {
                    *self.seen.entry(name).or_default() += 1;
                }
            }
            complete(&self.place, arguments);
            assert_equal_archives(expected, &self.place.path("arc"));
        }
    }

    fn prepare(&self, before: Option<&str>) {
        let archive = self.place.path("arc");
        if archive.exists() {
            std::fs::remove_dir_all(&archive).unwrap();
        }
        if let Some(before) = before {
            copy_with_modes(&self.place.path(before), &archive);
        }
    }
}

pub(crate) fn copy_with_modes(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for name in names(from) {
        std::fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Returns how many times a run is killed.
pub(crate) fn points() -> usize {
    usize::try_from(setting("STOOK_CRASH_POINTS", 20)).unwrap()
}

/// Returns the seed of everything random here; another one in every run unless it is set.
pub(crate) fn seed() -> u64 {
    setting("STOOK_CRASH_SEED", u64::from(std::process::id()))
}

#[test]
fn kill_9_at_any_moment_and_the_same_command_again_gives_the_same_archive() {
    crash(points(), &[]);
}

#[test]
fn kill_9_at_any_moment_of_a_run_that_compresses_gives_the_same_archive() {
    crash(points() / 2, &["--zstd"]);
}

/// Kills create, with these options, and then update, and compares what becomes of both with undisturbed runs.
fn crash(points: usize, created_with: &[&str]) {
    let seed = seed();
    println!("STOOK_CRASH_SEED={seed} STOOK_CRASH_POINTS={points}");
    let mut random = Random::new(seed);
    let place = Place::with(&crash_tree(&mut random));
    let options = ["--volume-size", "2200KiB", "--checkpoint-size", "64KiB"];
    let create = [&["create", "src", "arc"][..], &options, created_with].concat();
    let update = [&["update", "src", "arc"][..], &options].concat();
    let created = undisturbed(&place, &[&create]);
    assert!(names(&created).len() > 6, "{:?}", names(&created));

    let mut crashes = Crashes {
        place,
        random,
        kills: 0,
        seen: BTreeMap::new(),
    };
    crashes.run(points.div_ceil(2), &create, None, &created);

    let place = &crashes.place;
    std::fs::rename(&created, place.path("created")).unwrap();
    change(&place.path("src"), &mut crashes.random);
    crashes.prepare(Some("created"));
    let updated = undisturbed(&crashes.place, &[&update]);
    crashes.run(points / 2, &update, Some("created"), &updated);

    crashes.place.stderr(&["check", "arc", "--volumes"]);
    crashes.place.stderr(&["extract", "arc", "--into", "out"]);
    let place = &crashes.place;
    // Links between symbolic links or pipes are not kept, only those between files.
    let compare = Compare::everything().without(Fact::Links);
    let difference = place
        .snapshot("src")
        .difference(&place.snapshot("out"), &compare);
    assert_eq!(difference, [""; 0]);
    println!(
        "{points} of {points} ended equal, {} kills; left by kills: {:?}",
        crashes.kills, crashes.seen
    );
    assert!(crashes.kills > points / 3, "hardly anything was killed");
}

/// What a killed run left: rows in index.db, rows behind the last checkpoint, and where that is.
struct Left {
    committed: u64,
    staged: u64,
    checkpoint: u64,
    partial_len: u64,
}

fn left(archive: &Path, aside: &Path) -> Left {
    // Looked at in a copy: opening a database undoes what a killed writer had not committed.
    copy_with_modes(archive, aside);
    let rows: Vec<String> = names(aside)
        .into_iter()
        .filter(|name| name.ends_with(".rows.partial"))
        .collect();
    let mut databases = vec![aside.join("index.db")];
    databases.extend(rows.iter().map(|name| aside.join(name)));
    let paths: Vec<&Path> = databases.iter().map(PathBuf::as_path).collect();
    let dumps = dumps(&paths);
    let count = |dump: &String, table: &str| {
        dump.lines().filter(|line| line.starts_with(table)).count() as u64
    };
    let staging = dumps.get(1);
    let checkpoint =
        staging.and_then(|dump| dump.lines().find(|line| line.starts_with("checkpoint: ")));
    let checkpoint = checkpoint.map_or(0, |line| line.split(", ").nth(3).unwrap().parse().unwrap());
    let partial = names(aside)
        .into_iter()
        .find(|name| name.ends_with(".tar.partial"));
    let partial_len = partial.map_or(0, |name| std::fs::metadata(aside.join(name)).unwrap().len());
    let left = Left {
        committed: count(&dumps[0], "files: "),
        staged: staging.map_or(0, |dump| count(dump, "rows: ")),
        checkpoint,
        partial_len,
    };
    std::fs::remove_dir_all(aside).unwrap();
    left
}

/// Starts a create and kills it as soon as this holds; asserts that the next one does only what no checkpoint has.
///
/// Returns what was left, or None if all was done before the kill.
fn kill_and_go_on(place: &Place, all: u64, holds: impl FnMut() -> bool) -> Option<Left> {
    let create = ["create", "src", "arc", "--checkpoint-size", "64KiB"];
    let mut command = place.command(&create);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(&mut child, holds);
    child.kill().unwrap();
    child.wait().unwrap();
    let left = left(&place.path("arc"), &place.path("aside"));
    let was_done = left.committed == all;
    if !was_done {
        let done = place.json(&[&create[..], &["--json"]].concat());
        let again = done.last().unwrap()["members"].as_u64().unwrap();
        assert_eq!(left.committed + left.staged + again, all);
    }
    std::fs::remove_dir_all(place.path("arc")).unwrap();
    (!was_done).then_some(left)
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

#[test]
fn at_most_one_checkpoint_of_work_is_done_twice() {
    let tree = crash_tree(&mut Random::new(77));
    let place = Place::with(&tree);
    let partial = place.path("arc/000000.tar.partial");
    let rows = place.path("arc/000000.rows.partial");
    for point in 0..6 {
        let holds = || len(&partial) > point * (2 << 20) && len(&rows) > 0;
        match kill_and_go_on(&place, tree.len() as u64, holds) {
            None => println!("point {point}: it was done before it could be killed"),
            Some(left) => {
                // A checkpoint comes after a piece of at most 4 MiB, or a large file.
                let lost = left.partial_len.saturating_sub(left.checkpoint);
                assert!(
                    lost <= (64 << 10) + (7 << 20),
                    "point {point}: {lost} bytes"
                );
            }
        }
    }
}

#[test]
fn a_run_killed_in_a_large_file_keeps_all_before_it() {
    let mut tree = Tree::new();
    for number in 0..100 {
        tree.insert(format!("small/f{number}"), file([b'x'; 3000]));
    }
    let large = Random::new(4).bytes(8 << 20).repeat(8);
    tree.insert("then/large", file(large));
    let place = Place::with(&tree);
    let partial = place.path("arc/000000.tar.partial");
    let holds = || len(&partial) > 6 << 20;
    let left = kill_and_go_on(&place, tree.len() as u64, holds).expect("it ended too soon");
    // Both directories and what is in the first one.
    assert_eq!((left.committed, left.staged), (0, 102));
}
