//! Agreement with Python: its times, and rows written the way zstash writes them.

use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Stdio};

use stook_index::{AsOf, Deleted, Index, Mtime, NameTable, VolumeId};
use stook_pool::Jobs;
use stook_sys::Timestamp;

use crate::samples::{Folder, commit, find, state};

/// Runs a script with this input; `None`, said aloud, where there is no Python.
fn python(script: &str, arguments: &[&str], input: &str) -> Option<String> {
    let command = Command::new("python3")
        .args(["-W", "ignore", "-c", script])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match command {
        Ok(child) => child,
        Err(error) => {
            stook_testkit::skip!("cannot run python3: {error}");
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Some thousand stamps: around zero, around halves of microseconds, and all over the calendar.
fn stamps() -> Vec<Timestamp> {
    let mut stamps = Vec::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for i in 0..6000_i64 {
        let nanoseconds = u32::try_from(match i % 4 {
            0 => draw(1_000_000_000),
            1 => draw(1_000_000) * 1000 + 500,
            2 => 999_999_400 + draw(600),
            _ => draw(3) * 500_000_000 / 2,
        })
        .unwrap();
        let seconds = match i % 3 {
            0 => 1_500_000_000 + i64::try_from(draw(400_000_000)).unwrap(),
            1 => i64::try_from(draw(315_000_000_000)).unwrap() - 62_000_000_000,
            _ => i % 40 - 20,
        };
        stamps.push(Timestamp {
            seconds,
            nanoseconds,
        });
    }
    stamps
}

#[test]
fn times_are_what_python_makes_of_them() {
    let script = "
import sys, datetime
for line in sys.stdin:
    seconds, nanoseconds = map(int, line.split())
    print(datetime.datetime.utcfromtimestamp(float(seconds) + 1e-9 * float(nanoseconds)).isoformat(' '))
";
    let stamps = stamps();
    let mut input = String::new();
    for stamp in &stamps {
        writeln!(input, "{} {}", stamp.seconds, stamp.nanoseconds).unwrap();
    }
    let Some(output) = python(script, &[], &input) else {
        return;
    };
    assert_eq!(output.lines().count(), stamps.len());
    for (stamp, text) in stamps.iter().zip(output.lines()) {
        let mtime = Mtime::from(*stamp);
        assert_eq!(mtime.to_string(), text, "{stamp:?}");
        assert_eq!(Mtime::from_text(text.as_bytes()), Some(mtime), "{stamp:?}");
    }
}

/// What zstash 1.6 runs: every row by `select`, then inserts of seven values, with its commits.
const ZSTASH_UPDATE: &str = "
import sys, sqlite3, datetime
con = sqlite3.connect(sys.argv[1], detect_types=sqlite3.PARSE_DECLTYPES)
cur = con.cursor()
for arg in ('hpss', 'maxsize', 'path'):
    cur.execute('select value from config where arg=?', (arg,))
    cur.fetchone()[0]
cur.execute('select * from files')
for row in cur.fetchall():
    assert len(row) == 7 and isinstance(row[3], datetime.datetime)
    print(row[1], row[2], row[3].isoformat(' '), row[4], row[5], row[6], sep='\\t')
cur.execute('select distinct tar from files')
tar = '{0:06x}.tar'.format(max(int(t[0][0:6], 16) for t in cur.fetchall()) + 1)
cur.execute('create table if not exists tars (\\nid integer primary key,\\nname text,\\nsize integer,\\nmd5 text\\n);')
cur.execute('insert into tars values (NULL,?,?,?)', (tar, 10240, '0' * 32))
con.commit()
mtime = datetime.datetime(2021, 2, 3, 4, 5, 6, 700)
files = [('b', 20, mtime, '1' * 32, tar, 0), ('later', 21, mtime.replace(microsecond=0), None, tar, 2048)]
cur.executemany('insert into files values (NULL,?,?,?,?,?,?)', files)
con.commit()
con.close()
";

#[test]
fn zstash_goes_on_with_an_index_of_stook() {
    let folder = Folder::new();
    let mut index = folder.create();
    let run = index.begin_run("stook create", Mtime(0)).unwrap();
    commit(&mut index, 0, &["a", "b", "later"], 1);
    index.finish_run(run, Mtime(1), 0, [&b"later"[..]]).unwrap();
    drop(index);
    let Some(output) = python(ZSTASH_UPDATE, &[folder.index.to_str().unwrap()], "") else {
        return;
    };
    let md5 = "07".repeat(16);
    let expected = ["a", "b", "later"]
        .map(|name| format!("{name}\t1\t2020-09-13 12:26:40\t{md5}\t000000.tar\t0\n"));
    assert_eq!(output, expected.concat());
    assert_eq!(folder.files(), ["index.db"]);

    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(
        state(&index, AsOf::Now, Deleted::Hide),
        ["a=1", "b=20", "later=21"]
    );
    assert_eq!(state(&index, AsOf::Run(run), Deleted::Hide), ["a=1", "b=1"]);
    assert_eq!(
        find(&index, b"b").unwrap().mtime.to_string(),
        "2021-02-03 04:05:06.000700"
    );
    assert_eq!(index.next_volume().unwrap(), VolumeId::plain(2));
    assert_eq!(
        NameTable::load(&index, None, Jobs::default())
            .unwrap()
            .lookup(b"later")
            .unwrap()
            .size,
        21
    );
    drop(index);
    let mut index = Index::open_write(&folder.index).unwrap();
    let run = index.begin_run("stook update", Mtime(2)).unwrap();
    assert_eq!(index.runs().unwrap()[1].first_file.0, 6);
    commit(&mut index, 2, &["b"], 30);
    index.finish_run(run, Mtime(3), 0, [&b"a"[..]]).unwrap();
    assert_eq!(
        state(&index, AsOf::Now, Deleted::Hide),
        ["later=21", "b=30"]
    );
}
